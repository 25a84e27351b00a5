# plain: any
# process: held
# namespace: held
from escape import *
import stat
attempt(lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 1)))
