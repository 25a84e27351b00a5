# plain: open
# process: open
# namespace: held
from escape import *
def change():
    handle = os.open(OUTSIDE + "/file", os.O_PATH)
    os.chmod(f"/proc/self/fd/{handle}", 0o777)
attempt(change)
