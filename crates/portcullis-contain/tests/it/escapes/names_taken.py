# plain: open
# process: undone
# namespace: undone
from escape import *
for number in range(1200):
    os.close(os.open(f".envrc.contained-{number}", os.O_CREAT))
attempt(lambda: write(".envrc"))
