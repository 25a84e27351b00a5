# plain: open
# process: undone
# namespace: undone
from escape import *
def shut():
    write("sub/CLAUDE.md")
    write(".envrc")
    for folder in ["sub/.git", "sub", "."]:
        os.chmod(folder, 0)
attempt(shut)
