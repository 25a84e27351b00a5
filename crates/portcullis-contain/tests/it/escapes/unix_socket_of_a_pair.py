# plain: any
# process: held
# namespace: held
from escape import *
import socket
def bind():
    one, two = socket.socketpair()
    one.bind("mine")
attempt(bind)
