# plain: open
# process: held
# namespace: undone
from escape import *
attempt(lambda: write(f"/tmp/portcullis-escape-{VICTIM}"))
