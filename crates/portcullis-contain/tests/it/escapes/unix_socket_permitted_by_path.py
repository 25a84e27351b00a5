# plain: open
# process: not run
# namespace: open
# sockets: socket
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect(OUTSIDE + "/socket"))
