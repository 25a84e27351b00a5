# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: __import__("socket").sethostname("escape"))
