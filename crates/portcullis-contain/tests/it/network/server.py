"""A small world of packages on loopback: files, a wheel, a package of npm, a crate, a git repository.

`server.py FOLDER CERTIFICATE KEY` serves it over HTTP and HTTPS, and prints both ports. Addresses within what it serves
name the host `packages.test` and the port of HTTPS, as registries do.
"""
import base64, hashlib, io, json, os, ssl, subprocess, sys, tarfile, threading, zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

folder, certificate, key = sys.argv[1:]


def write(path, content):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def wheel():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("tiny.py", "SIZE = 'small'\n")
        file.writestr("tiny-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0.0\n")
        file.writestr("tiny-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.0.dist-info/RECORD", "")
    return out.getvalue()


def make(base):
    write("hello", "hello\n")
    write("large", b"x" * 5_000_000)
    write("simple/tiny/index.html", f'<a href="{base}/wheels/tiny-1.0.0-py3-none-any.whl">tiny-1.0.0-py3-none-any.whl</a>')
    write("wheels/tiny-1.0.0-py3-none-any.whl", wheel())
    package = archive({"package/package.json": '{"name": "tiny", "version": "1.0.0"}', "package/index.js": ""})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()
    dist = {"tarball": f"{base}/npm-files/tiny-1.0.0.tgz", "integrity": integrity}
    version = {"name": "tiny", "version": "1.0.0", "dist": dist}
    write("npm/tiny", json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))
    write("npm-files/tiny-1.0.0.tgz", package)
    manifest = '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
    crate = archive({"tiny-1.0.0/Cargo.toml": manifest, "tiny-1.0.0/src/lib.rs": ""})
    line = {"name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    write("index/config.json", json.dumps({"dl": f"{base}/crates"}))
    write("index/ti/ny/tiny", json.dumps({**line, "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")
    write("crates/tiny/1.0.0/download", crate)
    source = os.path.join(folder, "source")
    git = lambda *words: subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@test", *words], check=True, stdout=sys.stderr)
    git("init", "-q", source)
    write("source/file", "from git\n")
    git("-C", source, "add", "file")
    git("-C", source, "commit", "-qm", "First")
    git("clone", "-q", "--bare", source, os.path.join(folder, "git", "project.git"))


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=folder)

    def do_GET(self):
        self.git() if self.path.startswith("/git/") else super().do_GET()

    def do_POST(self):
        self.git()

    def do_PUT(self):
        length = int(self.headers["Content-Length"])
        content = b"%d\n" % len(self.rfile.read(length))
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def git(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            **os.environ, "GIT_PROJECT_ROOT": os.path.join(folder, "git"), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path.removeprefix("/git"), "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }
        out = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


plain, secure = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
# Within the handshake a slow client would hold up all others.
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
make(f"https://packages.test:{secure.server_port}")
threading.Thread(target=plain.serve_forever, daemon=True).start()
print(plain.server_port, secure.server_port, flush=True)
secure.serve_forever()
