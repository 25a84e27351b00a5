# plain: open
# process: held
# namespace: held
# process below 6: open
from escape import *
information = (ctypes.c_int * 32)(18, 0, -1)
attempt(lambda: syscall(129, 138, VICTIM, 18, ctypes.byref(information)))
