# plain: open
# process: held
# namespace: undone
from escape import *
def share():
    queue = syscall(68, 186, VICTIM, 0o1666)
    syscall(71, 187, queue, 0, 0)
attempt(share)
