# plain: open
# process: held
# namespace: held
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect("service"))
