# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: open(f"/proc/{VICTIM}/cwd/secret").read())
