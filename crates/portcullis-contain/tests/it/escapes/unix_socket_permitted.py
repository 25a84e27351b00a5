# plain: open
# process: not run
# namespace: open
# sockets: own
from escape import *
import socket
def listen():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("mine")
    listener.listen()
    socket.socket(socket.AF_UNIX).connect("mine")
attempt(listen)
