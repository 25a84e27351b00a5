# plain: any
# process: held
# namespace: held
from escape import *
import socket
def ask():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("192.0.2.53", 53))
attempt(ask)
