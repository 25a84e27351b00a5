# plain: open
# process: not run
# namespace: held
# sockets: own
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT))
