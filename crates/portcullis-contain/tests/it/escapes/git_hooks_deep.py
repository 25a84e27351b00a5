# plain: open
# process: undone
# namespace: held
from escape import *
def hide():
    os.makedirs(".git/hooks/" + "d/" * 40)
    write(".git/hooks/pre-commit")
attempt(hide)
