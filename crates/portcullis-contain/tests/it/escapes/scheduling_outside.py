# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.sched_setaffinity(VICTIM, {0}))
