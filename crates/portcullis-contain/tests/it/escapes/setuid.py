# plain: any
# process: held
# namespace: held
from escape import *
import subprocess
def become():
    answer = subprocess.run(["./id-of-root", "-u"], capture_output=True, text=True)
    if answer.stdout.strip() != "0" or os.getuid() == 0:
        raise OSError(errno.EPERM, "still oneself")
attempt(become)
