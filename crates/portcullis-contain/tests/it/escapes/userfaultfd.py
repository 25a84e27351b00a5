# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(323, 282, 1))
