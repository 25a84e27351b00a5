# plain: any
# process: held
# namespace: held
from escape import *
import socket
attempt(lambda: socket.create_connection(("::ffff:127.0.0.1", TCP), 2))
