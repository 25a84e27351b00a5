# plain: open
# process: held
# namespace: held
from escape import *
AT_FDCWD, EXCHANGE = -100, 2
write("mine")
attempt(lambda: syscall(316, 276, AT_FDCWD, b"mine", AT_FDCWD, (OUTSIDE + "/file").encode(), EXCHANGE))
