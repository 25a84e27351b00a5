"""Runs a program on a machine from which something was taken away: without.py WHAT PROGRAM ARGUMENTS"""
import ctypes, errno, os, platform, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWNS = 0x10000000, 0x00020000
REMOUNT, BIND, RDONLY, PRIVATE, REC = 32, 4096, 1, 1 << 18, 16384
WHAT = sys.argv[1]

def call(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), WHAT)

def namespaces(flags):
    """Namespaces of its own; where a user is needed for them, one in which everybody is who he was."""
    user, group, is_root = os.getuid(), os.getgid(), os.getuid() == 0
    if is_root and not flags & NEWUSER:
        return call(libc.unshare(flags))
    ready, done = os.pipe(), os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.read(ready[0], 1)
        count = 1 << 31 if is_root else 1
        if not is_root:
            open(f"/proc/{parent}/setgroups", "w").write("deny")
        open(f"/proc/{parent}/uid_map", "w").write(f"{0 if is_root else user} {0 if is_root else user} {count}")
        open(f"/proc/{parent}/gid_map", "w").write(f"{0 if is_root else group} {0 if is_root else group} {count}")
        os._exit(0)
    call(libc.unshare(flags | NEWUSER))
    os.write(ready[1], b"x")
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the maps were not written")

def mount(source, target, kind, flags, options=None):
    call(libc.mount(source, target, kind, flags, options))

def refuse(numbers, error):
    """A filter that answers these system calls with an error, as those of containers do."""
    number = numbers[0 if platform.machine() == "x86_64" else 1]
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x50000 | error)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    instructions = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    call(libc.prctl(38, 1, 0, 0, 0))
    call(libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0))

if WHAT == "user_namespaces":
    namespaces(NEWUSER)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
elif WHAT == "unshare":
    refuse((272, 97), errno.EPERM)
elif WHAT == "rights":
    namespaces(NEWNS)
    mount(None, b"/", None, REC | PRIVATE)
    mount(None, b"/proc", None, REMOUNT | BIND | RDONLY)
elif WHAT == "proc":
    namespaces(NEWNS)
    mount(None, b"/", None, REC | PRIVATE)
    mount(b"tmpfs", b"/proc/sys", b"tmpfs", RDONLY)
elif WHAT == "control_groups":
    namespaces(NEWNS)
    mount(None, b"/", None, REC | PRIVATE)
    mount(b"tmpfs", b"/sys/fs/cgroup", b"tmpfs", RDONLY)
elif WHAT == "one_mount_a_path":
    NOSUID, NODEV, NOEXEC = 2, 4, 8
    namespaces(NEWNS)
    mount(None, b"/", None, REC | PRIVATE)
    for hidden in (True, False):
        mount(b"tmpfs", b"/mnt", b"tmpfs", NOSUID | NODEV)
        os.mkdir("/mnt/within")
        mount(b"tmpfs", b"/mnt/within", b"tmpfs", 0 if hidden else NOSUID | NODEV | NOEXEC)
elif WHAT == "landlock":
    refuse((444, 444), errno.ENOSYS)
elif WHAT == "seccomp":
    refuse((317, 277), errno.EINVAL)
else:
    sys.exit("what?")
os.execv(sys.argv[2], sys.argv[2:])
