# plain: any
# process: held
# namespace: held
# process below 4: not run
# namespace below 4: not run
# ports: 1
from escape import *
import socket
def send():
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.sendto(b"data", 0x20000000, ("127.0.0.1", TCP))
attempt(send)
