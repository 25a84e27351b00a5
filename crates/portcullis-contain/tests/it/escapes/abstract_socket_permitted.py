# plain: open
# process: held
# namespace: held
# unix: true
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT))
