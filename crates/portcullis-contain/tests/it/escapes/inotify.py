# plain: open
# process: open
# namespace: open
from escape import *
watch = libc.inotify_init1(0)
def observe():
    if libc.inotify_add_watch(watch, OUTSIDE.encode(), 0x100) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
attempt(observe)
