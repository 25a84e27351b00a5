# plain: open
# process: held
# namespace: undone
from escape import *
def share():
    write(f"/dev/shm/portcullis-escape-{VICTIM}")
attempt(share)
