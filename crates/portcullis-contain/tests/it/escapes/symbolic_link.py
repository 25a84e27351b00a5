# plain: open
# process: held
# namespace: held
from escape import *
os.symlink(OUTSIDE, "link")
attempt(lambda: write("link/file"))
