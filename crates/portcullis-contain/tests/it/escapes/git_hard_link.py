# plain: open
# process: undone
# namespace: held
from escape import *
def link():
    os.link(".git/config", "mine")
    write("mine")
attempt(link)
