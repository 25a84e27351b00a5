# plain: open
# process: held
# namespace: held
from escape import *
attempt(lambda: open("/proc/self/oom_score_adj", "w").write("500"))
