# plain: open
# process: held
# namespace: held
# process below 4: not run
# namespace below 4: not run
# ports: 1
from escape import *
import socket
def send():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b"data", ("127.0.0.1", UDP))
attempt(send)
