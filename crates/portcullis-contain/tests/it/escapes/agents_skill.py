# plain: open
# process: undone
# namespace: held
from escape import *
def add():
    os.makedirs(".claude/skills/evil")
    write(".claude/skills/evil/SKILL.md")
attempt(add)
