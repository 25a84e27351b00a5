# plain: any
# process: held
# namespace: held
from escape import *
import fcntl
def type():
    one, two = os.openpty()
    os.setsid()
    fcntl.ioctl(two, 0x540E, 0)
    fcntl.ioctl(two, 0x5412, b"x")
attempt(type)
