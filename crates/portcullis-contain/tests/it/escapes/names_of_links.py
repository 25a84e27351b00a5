# plain: open
# process: undone
# namespace: undone
from escape import *
def link():
    os.symlink("/etc/hosts", ".envrc")
attempt(link)
