# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(101, 117, 16, VICTIM, 0, 0))
