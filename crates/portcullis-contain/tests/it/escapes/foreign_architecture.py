# plain: any
# process: held
# namespace: held
from escape import *
import mmap
if platform.machine() != "x86_64":
    sys.exit(7)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# getpid of i386: mov eax, 20; int 0x80; ret
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
sys.exit(0 if result > 0 else 7)
