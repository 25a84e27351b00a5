# plain: open
# process: held
# namespace: held
from escape import *
def unshare():
    if libc.unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")
attempt(unshare)
