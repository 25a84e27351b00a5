# plain: any
# process: held
# namespace: held
from escape import *
import resource
def leave():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if (soft, hard) == (1, 1):
        raise OSError(errno.EPERM, "neither a file nor a program")
attempt(leave)
