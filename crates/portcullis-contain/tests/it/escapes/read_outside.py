# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: open(OUTSIDE + "/secret").read())
