# plain: any
# process: held
# namespace: held
from escape import *
import time
attempt(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
