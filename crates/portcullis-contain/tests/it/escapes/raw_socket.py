# plain: any
# process: held
# namespace: held
from escape import *
import socket
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
