# plain: open
# process: held
# namespace: held
from escape import *
import socket, time
def send():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("127.0.0.1", UDP))
    for _ in range(3):
        sender.send(b"data")
        time.sleep(0.02)
attempt(send)
