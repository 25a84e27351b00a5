# plain: any
# process: held
# namespace: held
from escape import *
import fcntl
attempt(lambda: fcntl.ioctl(os.openpty()[1], 0x5423, b"\x03\0\0\0"))
