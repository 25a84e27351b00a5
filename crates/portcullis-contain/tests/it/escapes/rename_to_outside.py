# plain: open
# process: held
# namespace: held
from escape import *
write("mine")
attempt(lambda: os.rename("mine", OUTSIDE + "/file"))
