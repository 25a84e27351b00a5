# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: open(f"/proc/{VICTIM}/fd/0").read(0))
