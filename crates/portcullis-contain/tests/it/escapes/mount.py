# plain: any
# process: held
# namespace: held
from escape import *
def mount():
    if libc.mount(b"none", b"/", None, 1 << 18, None):
        raise OSError(ctypes.get_errno(), "mount")
attempt(mount)
