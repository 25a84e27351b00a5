# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: os.execv(OUTSIDE + "/program", ["program"]))
