# plain: open
# process: held
# namespace: held
from escape import *
def clone():
    if syscall(56, 220, 0x10000000 | 17, 0, 0, 0, 0) == 0:
        os._exit(0)
attempt(clone)
