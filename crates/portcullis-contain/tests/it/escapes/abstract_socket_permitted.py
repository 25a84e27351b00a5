# plain: open
# process: held
# namespace: held
# unix: true
# process below 6: open
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT))
