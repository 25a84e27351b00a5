# plain: open
# process: held
# namespace: held
# process below 4: not run
# namespace below 4: not run
# ports: 1
from escape import *
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", TCP), 2))
