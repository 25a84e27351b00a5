# plain: open
# process: open
# namespace: undone
# ports: 1
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).listen())
