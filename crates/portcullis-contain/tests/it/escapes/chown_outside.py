# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.chown(OUTSIDE + "/file", -1, os.getgid()))
