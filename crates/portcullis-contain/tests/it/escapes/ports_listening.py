# plain: open
# process: open
# namespace: undone
# process below 4: not run
# namespace below 4: not run
# ports: 1
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).listen())
