# plain: any
# process: undone
# namespace: held
# process below 2: held
from escape import *
def hide():
    AT_FDCWD, WHITEOUT = -100, 4
    syscall(316, 276, AT_FDCWD, b".git/config", AT_FDCWD, b"moved", WHITEOUT)
attempt(hide)
