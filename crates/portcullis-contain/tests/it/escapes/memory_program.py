# plain: open
# process: open
# namespace: open
from escape import *
handle = os.memfd_create("program", 0)
with open("/bin/true", "rb") as file:
    os.write(handle, file.read())
attempt(lambda: os.execve(handle, ["program"], {}))
