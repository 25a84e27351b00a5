# plain: open
# process: undone
# namespace: held
# process below 2: held
from escape import *
AT_FDCWD, EXCHANGE = -100, 2
write("mine")
attempt(lambda: syscall(316, 276, AT_FDCWD, b"mine", AT_FDCWD, b".git/config", EXCHANGE))
