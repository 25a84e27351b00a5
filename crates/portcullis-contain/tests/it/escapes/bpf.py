# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(321, 280, 0, 0, 0))
