# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(310, 270, VICTIM, 0, 0, 0, 0, 0))
