# plain: open
# process: open
# namespace: open
# unix: true
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect(OUTSIDE + "/socket"))
