"""Tries to reach what the profile does not name. Prints what it reached; nothing is what is expected."""
import os, socket, sys

HTTP, UDP = int(sys.argv[1]), int(sys.argv[2])
PROXY = ("127.0.0.1", 3128)


def through_the_proxy(request):
    with socket.create_connection(PROXY, 10) as stream:
        stream.sendall(request.encode())
        answer = stream.recv(4096)
    if not answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")):
        raise SystemExit(f"the proxy passed {request!r}: {answer!r}")
    raise OSError("refused")


def datagram(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(1)
        sender.connect(address)
        sender.send(b"question")
        sender.recv(1)


ATTEMPTS = {
    "the machine's loopback": lambda: socket.create_connection(("127.0.0.1", HTTP), 2),
    "the machine's loopback over IPv6": lambda: socket.create_connection(("::1", HTTP), 2),
    "the address of a host": lambda: socket.create_connection(("192.0.2.1", 443), 2),
    "a name server": lambda: datagram(socket.AF_INET, ("192.0.2.53", 53)),
    "the machine's datagrams": lambda: datagram(socket.AF_INET, ("127.0.0.1", UDP)),
    "names": lambda: socket.getaddrinfo("packages.test", 443),
    "another name": lambda: through_the_proxy("CONNECT other.test:443 HTTP/1.1\r\n\r\n"),
    "another port": lambda: through_the_proxy("CONNECT packages.test:22 HTTP/1.1\r\n\r\n"),
    "a name above": lambda: through_the_proxy("CONNECT files.test:443 HTTP/1.1\r\n\r\n"),
    "the loopback by address": lambda: through_the_proxy(f"CONNECT 127.0.0.1:{HTTP} HTTP/1.1\r\n\r\n"),
    "the loopback by an old spelling": lambda: through_the_proxy(f"CONNECT 2130706433:{HTTP} HTTP/1.1\r\n\r\n"),
    "the loopback mapped": lambda: through_the_proxy(f"CONNECT [::ffff:127.0.0.1]:{HTTP} HTTP/1.1\r\n\r\n"),
    "the loopback by name": lambda: through_the_proxy(f"GET http://localhost:{HTTP}/ HTTP/1.1\r\nHost: localhost:{HTTP}\r\n\r\n"),
    "metadata": lambda: through_the_proxy("GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"),
    "a name that leads inside": lambda: through_the_proxy("CONNECT inside.test:443 HTTP/1.1\r\n\r\n"),
}

for what, attempt in ATTEMPTS.items():
    try:
        attempt()
        print("reached:", what)
    except OSError:
        pass
links = [f"{number}: {os.readlink(f'/proc/self/fd/{number}')}" for number in range(3, 64) if os.path.exists(f"/proc/self/fd/{number}")]
if links:
    print("descriptors:", links)
print("done")
