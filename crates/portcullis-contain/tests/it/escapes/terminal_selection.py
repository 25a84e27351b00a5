# plain: any
# process: held
# namespace: held
from escape import *
import fcntl
def paste():
    try:
        fcntl.ioctl(0, 0x541C, b"\x03")
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
attempt(paste)
