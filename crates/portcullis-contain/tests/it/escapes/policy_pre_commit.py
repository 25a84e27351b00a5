# plain: open
# process: open
# namespace: open
from escape import *
attempt(lambda: write(".pre-commit-config.yaml"))
