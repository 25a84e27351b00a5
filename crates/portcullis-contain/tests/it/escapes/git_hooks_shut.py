# plain: open
# process: undone
# namespace: held
from escape import *
def shut():
    write(".git/hooks/pre-commit")
    os.chmod(".git/hooks", 0o500)
    os.chmod(".git", 0o500)
attempt(shut)
