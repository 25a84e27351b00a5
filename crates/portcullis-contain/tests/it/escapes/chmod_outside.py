# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.chmod(OUTSIDE + "/file", 0o777))
