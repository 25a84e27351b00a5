# plain: open
# process: undone
# namespace: undone
from escape import *
def lead():
    os.rename("libs/deep/.git", "moved")
    write("libs/deep/.git", "gitdir: ../../evil")
attempt(lead)
