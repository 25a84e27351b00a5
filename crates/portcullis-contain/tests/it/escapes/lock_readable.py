# plain: open
# process: open
# namespace: open
from escape import *
import fcntl
attempt(lambda: fcntl.flock(open("/etc/passwd"), fcntl.LOCK_EX | fcntl.LOCK_NB))
