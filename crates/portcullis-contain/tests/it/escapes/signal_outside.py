# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: os.kill(VICTIM, 18))
