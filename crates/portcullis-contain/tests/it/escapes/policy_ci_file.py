# plain: open
# process: open
# namespace: open
from escape import *
os.makedirs(".github/workflows", exist_ok=True)
attempt(lambda: write(".github/workflows/ci.yml"))
