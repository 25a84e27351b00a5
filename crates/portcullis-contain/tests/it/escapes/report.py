# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: write(os.path.dirname(os.environ.get("TMPDIR", "/nowhere/x")) + "/report"))
