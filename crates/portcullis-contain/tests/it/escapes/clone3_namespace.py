# plain: open
# process: held
# namespace: held
from escape import *
def clone():
    arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
    if syscall(435, 435, ctypes.byref(arguments), 88) == 0:
        os._exit(0)
attempt(clone)
