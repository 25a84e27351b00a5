# plain: open
# process: held
# namespace: held
from escape import *
import resource
attempt(lambda: resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (10, 10)))
