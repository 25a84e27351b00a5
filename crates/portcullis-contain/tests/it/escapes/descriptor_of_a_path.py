# plain: open
# process: held
# namespace: held
from escape import *
def open_below():
    handle = os.open(OUTSIDE, os.O_PATH)
    os.open("secret", os.O_RDONLY, dir_fd=handle)
attempt(open_below)
