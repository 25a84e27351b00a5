# plain: any
# process: held
# namespace: open
from escape import *
attempt(lambda: os.kill(os.getppid(), 18))
