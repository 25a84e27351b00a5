# plain: any
# process: held
# namespace: held
from escape import *
def read():
    for name in ("mem", "vda", "sda", "nvme0n1", "fuse", "kvm"):
        try:
            open("/dev/" + name, "rb").close()
            return
        except OSError as error:
            last = error
    raise last
attempt(read)
