# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 10))
