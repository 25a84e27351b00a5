# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: os.open("/dev/tty", os.O_RDWR))
