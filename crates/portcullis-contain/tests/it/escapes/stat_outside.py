# plain: open
# process: open
# namespace: open
from escape import *
attempt(lambda: os.stat(OUTSIDE + "/secret"))
