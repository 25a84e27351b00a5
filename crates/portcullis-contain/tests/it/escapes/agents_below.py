# plain: open
# process: undone
# namespace: undone
from escape import *
def settings():
    os.makedirs("packages/one/.claude")
    write("packages/one/.claude/settings.json")
    write("sub/CLAUDE.md")
attempt(settings)
