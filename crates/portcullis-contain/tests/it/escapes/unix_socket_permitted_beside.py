# plain: open
# process: not run
# namespace: held
# sockets: socket
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", OUTSIDE + "/datagrams"))
