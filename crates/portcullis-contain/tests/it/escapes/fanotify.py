# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(300, 262, 0, 0))
