"""What every program here uses. Status 0: it got what it wanted; 7: it was refused. Anything else is a mistake."""
import ctypes, errno, os, platform, sys

OUTSIDE, VICTIM, TCP, UDP, ABSTRACT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
TERMINAL = sys.argv[6]
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what):
    try:
        what()
    except OSError as error:
        print("refused:", errno.errorcode.get(error.errno, error))
        sys.exit(7)
    sys.exit(0)

def syscall(x86_64, aarch64, *arguments):
    number = x86_64 if platform.machine() == "x86_64" else aarch64
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return result

def write(path, text="changed"):
    with open(path, "w") as file:
        file.write(text)
