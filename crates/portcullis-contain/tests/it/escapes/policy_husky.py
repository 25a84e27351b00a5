# plain: open
# process: open
# namespace: open
from escape import *
os.mkdir(".husky")
attempt(lambda: write(".husky/pre-commit"))
