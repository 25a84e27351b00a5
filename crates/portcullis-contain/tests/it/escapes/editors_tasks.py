# plain: open
# process: undone
# namespace: undone
from escape import *
attempt(lambda: write(".vscode/tasks.json"))
