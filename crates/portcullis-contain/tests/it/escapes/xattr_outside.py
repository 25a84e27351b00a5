# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: os.setxattr(OUTSIDE + "/file", "user.escape", b"1"))
