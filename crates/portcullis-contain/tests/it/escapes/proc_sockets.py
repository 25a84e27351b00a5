# plain: open
# process: open
# namespace: held
from escape import *
def find():
    if not any(OUTSIDE in line for line in open("/proc/net/unix")):
        raise OSError(errno.ENOENT, "not seen")
attempt(find)
