# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: syscall(308, 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0))
