# plain: open
# process: held
# namespace: held
from escape import *
def find():
    for number in range(3, 1024):
        try:
            os.write(number, b"changed")
            return
        except OSError:
            pass
    raise OSError(errno.EBADF, "no descriptor")
attempt(find)
