"""Stands between two MCP peers on stdio and writes down what passes, byte for byte.

    tee.py --log FILE -- CMD ARGS...

Runs CMD, passes standard input to it and its standard output on, unchanged and without waiting for whole lines,
and appends one JSON object a line to FILE: {"from": "client" | "server", "line": "..."}, the line without its
newline ({"base64": "..."} in place of "line" where the bytes are not UTF-8). Two logs, one on either side of the
gate, say what the gate did to the messages. Exits with CMD's status.
"""

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import threading

CHUNK_BYTES = 65536
LINE_BYTES_MAX = 64 * 1024 * 1024
EXIT_CANNOT_START = 3
EXIT_LINE_TOO_LONG = 1


class Log:
    """The log file; both directions write to it, a whole line at a time."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.lock = threading.Lock()

    def write(self, sender, line):
        try:
            entry = {"from": sender, "line": line.decode("utf-8")}
        except UnicodeDecodeError:
            entry = {"from": sender, "base64": base64.b64encode(line).decode("ascii")}
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()


def pump(source, sink, log, sender):
    """Copy until the source ends or the sink is gone. A line is logged before its last byte is passed on, so that
    whoever has received a message finds it in the log."""
    pending = b""
    try:
        while chunk := os.read(source, CHUNK_BYTES):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                log.write(sender, line)
            if len(pending) > LINE_BYTES_MAX:
                print(f"tee.py: a line from the {sender} is longer than {LINE_BYTES_MAX} bytes", file=sys.stderr)
                os._exit(EXIT_LINE_TOO_LONG)
            while chunk:
                chunk = chunk[os.write(sink, chunk):]
    except OSError:
        pass  # the other side has gone; what it said is already passed on
    if pending:
        log.write(sender, pending)
    try:
        os.close(sink)
    except OSError:
        pass


def main():
    parser = argparse.ArgumentParser(description="log both directions of an MCP conversation on stdio")
    parser.add_argument("--log", required=True, help="file to append to")
    parser.add_argument("command", nargs="+", help="the server and its arguments, after --")
    arguments = parser.parse_args()

    log = Log(arguments.log)
    try:
        child = subprocess.Popen(arguments.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        print(f"tee.py: cannot start `{arguments.command[0]}`: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: child.send_signal(received))

    to_child = os.dup(child.stdin.fileno())
    child.stdin.close()
    threading.Thread(target=pump, args=(0, to_child, log, "client"), daemon=True).start()
    pump(child.stdout.fileno(), 1, log, "server")
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    # Skips the interpreter's own tidying up, which would wait for the thread that reads standard input.
    status = main()
    sys.stdout.flush()
    os._exit(status)
