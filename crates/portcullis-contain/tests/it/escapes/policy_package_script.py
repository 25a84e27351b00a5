# plain: open
# process: open
# namespace: open
from escape import *
attempt(lambda: write("package.json", '{"scripts": {"test": "evil"}}'))
