# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: open("/dev/kmsg").read(1))
