# plain: open
# process: undone
# namespace: undone
from escape import *
def settings():
    os.mkdir(".claude")
    write(".claude/settings.json")
attempt(settings)
