# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: os.readlink(f"/proc/{VICTIM}/exe"))
