# plain: open
# process: held
# namespace: held
from escape import *
def share():
    name = f"portcullis-{VICTIM}".encode()
    syscall(240, 180, name, os.O_CREAT | os.O_RDWR, 0o600, 0)
    syscall(241, 181, name)
attempt(share)
