# plain: open
# process: held
# namespace: held
# process below 6: open
from escape import *
import signal
attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(VICTIM), 18))
