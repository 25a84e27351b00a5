# plain: open
# process: held
# namespace: held
from escape import *
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", TCP), 2))
