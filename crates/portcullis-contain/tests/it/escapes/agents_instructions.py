# plain: open
# process: undone
# namespace: held
from escape import *
def replace():
    write("new")
    os.rename("new", "AGENTS.md")
attempt(replace)
