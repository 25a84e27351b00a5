# plain: open
# process: held
# namespace: undone
from escape import *
def share():
    segment = syscall(29, 194, VICTIM, 4096, 0o1666)
    syscall(31, 195, segment, 0, 0)
attempt(share)
