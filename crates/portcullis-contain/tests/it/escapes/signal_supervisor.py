# plain: any
# process: held
# namespace: open
# process below 6: open
from escape import *
attempt(lambda: os.kill(os.getppid(), 18))
