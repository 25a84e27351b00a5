# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(438, 438, os.pidfd_open(VICTIM), 0, 0))
