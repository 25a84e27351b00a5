# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: write(os.path.relpath(OUTSIDE) + "/file"))
