# plain: any
# process: held
# namespace: held
from escape import *
attributes = (ctypes.c_uint32 * 32)(1, 128)
attempt(lambda: syscall(298, 241, ctypes.byref(attributes), 0, -1, -1, 0))
