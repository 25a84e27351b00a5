# plain: open
# process: open
# namespace: held
from escape import *
attempt(lambda: open(f"/proc/{VICTIM}/cmdline").read())
