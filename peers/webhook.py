"""A receiver of webhooks that knows the reference library of Standard Webhooks, and nothing of the gate but its pages.

    webhook.py --secret SECRET --token-file FILE --socket SOCKET --port-file PORT

It listens on a port of its choice and writes it to PORT. Each request for approval is answered four times over the
gate's socket: signed with another secret, altered after it was signed, as it should be, and once more. It ends when it
is told of the decision, and prints what it was told and what came of its answers.
"""

import argparse
import http.client
import json
import secrets
import socket
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from standardwebhooks import Webhook

SECONDS_MAX = 60.0


class OverSocket(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS_MAX)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def send(options, path, body, sign_with, altered=False):
    """Posts an answer. Returns the status and the code of the failure, or the state of the request."""
    id, now = "answer_" + secrets.token_hex(8), datetime.now(tz=timezone.utc)
    headers = {
        "authorization": "Bearer " + Path(options.token_file).read_text().strip(),
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": sign_with.sign(id, now, body),
    }
    connection = OverSocket(options.socket)
    connection.request("POST", path, body.replace("grant", "refuse") if altered else body, headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return [response.status, answer["error"]["code"] if "error" in answer else answer["state"]]


def answers(options, data):
    """What comes of four answers to a request."""
    reply = {name: data[name] for name in ("approval", "shown", "nonce")}
    body = json.dumps(reply | {"decision": "grant", "note": "from the pager"})
    known, other = Webhook(options.secret), Webhook(secrets.token_bytes(32))
    return [
        send(options, data["answers"], body, other),
        send(options, data["answers"], body, known, altered=True),
        send(options, data["answers"], body, known),
        send(options, data["answers"], body, known),
    ]


class Receiver(BaseHTTPRequestHandler):
    """Believes what the library believes."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        message = Webhook(self.server.options.secret).verify(body, dict(self.headers))
        self.server.told.append(message)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    for name in ("secret", "token-file", "socket", "port-file"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    server.options, server.told, server.timeout = options, [], SECONDS_MAX
    port = Path(options.port_file)
    port.with_suffix(".new").write_text(str(server.server_port))
    port.with_suffix(".new").rename(port)
    answered = []
    while not server.told or server.told[-1]["type"] != "approval.decided":
        before = len(server.told)
        server.handle_request()
        if len(server.told) == before:
            raise SystemExit("nothing that the library believes came in time")
        if server.told[-1]["type"] == "approval.requested" and not answered:
            answered = answers(options, server.told[-1]["data"])
    print(json.dumps({"told": server.told, "answered": answered}))


if __name__ == "__main__":
    main()
