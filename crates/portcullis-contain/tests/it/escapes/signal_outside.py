# plain: open
# process: held
# namespace: held
# process below 6: open
from escape import *
attempt(lambda: os.kill(VICTIM, 18))
