# plain: open
# process: held
# namespace: held
from escape import *
import socket
def send():
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"order", OUTSIDE + "/datagrams")
attempt(send)
