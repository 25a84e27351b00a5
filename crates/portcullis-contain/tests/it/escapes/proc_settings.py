# plain: any
# process: held
# namespace: held
from escape import *
attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/bin/false"))
