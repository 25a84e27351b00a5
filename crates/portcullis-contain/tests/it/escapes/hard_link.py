# plain: open
# process: held
# namespace: held
from escape import *
def link():
    os.link(OUTSIDE + "/file", "mine")
    write("mine")
attempt(link)
