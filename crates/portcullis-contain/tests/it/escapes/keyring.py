# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(248, 217, b"user", b"escape", b"x", 1, ctypes.c_long(-3)))
