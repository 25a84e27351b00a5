# plain: open
# process: undone
# namespace: held
# folder: sub
from escape import *
def move():
    os.rename("../sub", "../gone")
    os.mkdir("../sub")
    write("../sub/.envrc")
    write("../sub/CLAUDE.md")
attempt(move)
