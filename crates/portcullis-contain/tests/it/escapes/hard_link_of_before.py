# plain: open
# process: open
# namespace: open
from escape import *
attempt(lambda: write("linked"))
