# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: os.unlink(OUTSIDE + "/file"))
