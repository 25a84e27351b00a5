# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
