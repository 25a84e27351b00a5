# plain: open
# process: not run
# namespace: held
# sockets: own
from escape import *
import os, socket
def reach():
    try:
        socket.socket(socket.AF_UNIX).connect("service")
    except OSError:
        os.rename("service", "moved")
        socket.socket(socket.AF_UNIX).connect("moved")
attempt(reach)
