# plain: open
# process: undone
# namespace: held
# process below 2: held
from escape import *
def link():
    os.link(".git/config", "mine")
    write("mine")
attempt(link)
