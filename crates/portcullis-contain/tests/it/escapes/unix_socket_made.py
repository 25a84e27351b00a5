# plain: open
# process: held
# namespace: held
from escape import *
import socket
def listen():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("mine")
    listener.listen()
attempt(listen)
