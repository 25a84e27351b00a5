# plain: open
# process: undone
# namespace: undone
# process below 2: held
# namespace below 2: held
from escape import *
def lead():
    os.rename("libs/deep/.git", "moved")
    write("libs/deep/.git", "gitdir: ../../evil")
attempt(lead)
