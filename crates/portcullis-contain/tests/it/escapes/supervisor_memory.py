# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: open(f"/proc/{os.getppid()}/mem", "r+b"))
