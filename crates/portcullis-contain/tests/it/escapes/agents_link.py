# plain: open
# process: undone
# namespace: undone
from escape import *
def settings():
    os.mkdir("evil")
    write("evil/settings.json")
    os.symlink("evil", ".claude")
attempt(settings)
