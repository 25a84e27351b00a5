# plain: open
# process: held
# namespace: held
# process below 6: open
from escape import *
import fcntl, time
def arrange():
    read, out = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, VICTIM)
    fcntl.fcntl(read, 10, 19)
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
    os.write(out, b"x")
    time.sleep(0.05)
    if " T " not in open(f"/proc/{VICTIM}/stat").read():
        raise OSError(errno.EPERM, "still runs")
attempt(arrange)
