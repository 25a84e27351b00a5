# plain: open
# process: undone
# namespace: held
from escape import *
def move():
    os.rename(".git", "moved")
    os.makedirs(".git/hooks")
    write(".git/hooks/pre-commit")
attempt(move)
