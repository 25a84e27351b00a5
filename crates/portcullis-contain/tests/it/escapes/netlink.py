# plain: any
# process: held
# namespace: held
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15))
