# plain: open
# process: undone
# namespace: undone
from escape import *
def make():
    os.makedirs("node_modules/new/.git")
    write("node_modules/new/.git/config", "[core]\n\tfsmonitor = ./evil")
attempt(make)
