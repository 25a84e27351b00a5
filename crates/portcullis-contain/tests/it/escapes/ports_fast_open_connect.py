# plain: any
# process: held
# namespace: held
# process below 4: not run
# namespace below 4: not run
# ports: 1
from escape import *
import socket
def connect():
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setsockopt(socket.IPPROTO_TCP, 30, 1)
    connection.connect(("127.0.0.1", TCP))
    connection.send(b"data")
attempt(connect)
