# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.utime(OUTSIDE + "/file", (1, 1)))
