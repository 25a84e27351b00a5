# plain: open
# process: undone
# namespace: held
from escape import *
attempt(lambda: write(".vscode/settings.json"))
