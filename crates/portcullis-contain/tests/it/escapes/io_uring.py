# plain: open
# process: held
# namespace: held
from escape import *
parameters = ctypes.create_string_buffer(120)
attempt(lambda: syscall(425, 425, 8, parameters))
