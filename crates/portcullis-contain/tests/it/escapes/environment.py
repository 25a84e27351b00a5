# plain: open
# process: held
# namespace: held
from escape import *
def find():
    if "SECRET_TOKEN" not in os.environ:
        raise OSError(errno.ENOENT, "not seen")
attempt(find)
