# plain: open
# process: held
# namespace: held
from escape import *
def reopen():
    handle = os.open(OUTSIDE + "/file", os.O_PATH)
    write(f"/proc/self/fd/{handle}")
attempt(reopen)
