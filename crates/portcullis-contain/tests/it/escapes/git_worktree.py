# plain: open
# process: undone
# namespace: undone
from escape import *
attempt(lambda: write(".git/worktrees/tree/commondir", "../../../evil"))
