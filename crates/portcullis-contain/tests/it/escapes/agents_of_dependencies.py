# plain: open
# process: open
# namespace: open
from escape import *
os.makedirs("node_modules/new")
attempt(lambda: write("node_modules/new/CLAUDE.md"))
