# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(0x40000027, 0x40000027))
