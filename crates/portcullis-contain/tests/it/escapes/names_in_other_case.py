# plain: any
# process: undone
# namespace: undone
from escape import *
def make():
    write(".ENVRC")
attempt(make)
