# plain: any
# process: held
# namespace: held
from escape import *
import resource
attempt(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (1000, 1000)))
