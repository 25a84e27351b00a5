# plain: open
# process: held
# namespace: held
# process below 3: open
from escape import *
attempt(lambda: os.truncate(OUTSIDE + "/file", 0))
