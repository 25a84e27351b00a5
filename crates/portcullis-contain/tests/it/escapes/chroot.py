# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: os.chroot(os.getcwd()))
