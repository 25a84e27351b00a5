# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: os.truncate(OUTSIDE + "/file", 0))
