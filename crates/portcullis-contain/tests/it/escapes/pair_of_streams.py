# plain: open
# process: open
# namespace: open
from escape import *
import socket
def talk():
    one, two = socket.socketpair()
    one.send(b"x")
    two.recv(1)
attempt(talk)
