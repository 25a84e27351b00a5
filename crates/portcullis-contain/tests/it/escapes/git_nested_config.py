# plain: open
# process: undone
# namespace: undone
from escape import *
attempt(lambda: write("sub/.git/config", "[core]\n\tfsmonitor = ./evil"))
