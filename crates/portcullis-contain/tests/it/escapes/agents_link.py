# plain: open
# process: undone
# namespace: undone
from escape import *
def settings():
    os.mkdir("evil")
    write("evil/mcp.json")
    os.symlink("evil", ".cursor")
attempt(settings)
