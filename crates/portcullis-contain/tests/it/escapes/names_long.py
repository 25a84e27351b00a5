# plain: open
# process: undone
# namespace: held
from escape import *
attempt(lambda: write(".claude/skills/" + "x" * 250))
