#!/usr/bin/env python3
"""Runs a coding agent with a scripted stand-in for its language model, on loopback alone.

    unshare --net python3 scripted_model.py [--step COMMAND]... --log FILE -- AGENT [ARGUMENT]...

The stand-in asks for the command lines of the steps, one in each turn, with whichever tool of the agent runs command
lines, and then says that it is done. It speaks the chat completions and responses of OpenAI and the contents of Gemini,
as far as agents need them. Each request goes into the log, a line of JSON. `{port}` in the agent's arguments, in files
named with `--fill` and in the environment is the port of the stand-in; the exit code is that of the agent.
"""

import argparse
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Tools of agents that run command lines.
SHELLS = {"bash", "Bash", "run_shell_command", "exec_command", "shell_command", "run_commands"}
DONE = "That is done."
MODEL = "scripted"
# What values of further required arguments are.
FILLERS = {"string": "as asked", "number": 10_000, "integer": 10_000, "boolean": False, "array": []}
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def shell_of(tools):
    """Name and schema of the tool that runs command lines, of (name, schema) pairs."""
    return next((tool for tool in tools if tool[0] in SHELLS), (None, None))


def arguments(schema, command):
    """Arguments with which a tool of that schema runs the command line."""
    properties = schema.get("properties", {})
    name = next(name for name in ("cmd", "commands", "command") if name in properties)
    made = {name: [command] if properties[name].get("type") == "array" else command}
    for other in schema.get("required", []):
        made.setdefault(other, FILLERS.get(properties.get(other, {}).get("type"), "as asked"))
    return made


class Turn:
    """What the stand-in does in a turn: a call, or the last words."""

    def __init__(self, steps, tools, results):
        name, schema = shell_of(tools)
        self.number = results
        self.name = name if results < len(steps) else None
        self.arguments = arguments(schema, steps[results]) if self.name else None
        self.id = f"call_{results}"


def chat(steps, said):
    """Chat completions, as a stream or at once."""
    tools = [(tool["function"]["name"], tool["function"].get("parameters", {})) for tool in said.get("tools", [])]
    turn = Turn(steps, tools, sum(message["role"] == "tool" for message in said["messages"]))
    message = {"role": "assistant", "content": None if turn.name else DONE}
    if turn.name:
        function = {"name": turn.name, "arguments": json.dumps(turn.arguments)}
        message["tool_calls"] = [{"index": 0, "id": turn.id, "type": "function", "function": function}]
    finish = "tool_calls" if turn.name else "stop"
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    head = {"id": f"chat_{turn.number}", "created": 1, "model": MODEL}
    if not said.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return head | {"object": "chat.completion", "choices": [choice], "usage": usage}
    head["object"] = "chat.completion.chunk"
    return [
        head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
        "[DONE]",
    ]


def responses(steps, said):
    """Responses, as a stream."""
    tools = [(tool.get("name"), tool.get("parameters", {})) for tool in said.get("tools", [])]
    turn = Turn(steps, tools, sum(item.get("type") == "function_call_output" for item in said["input"]))
    if turn.name:
        item = {"type": "function_call", "id": f"item_{turn.number}", "call_id": turn.id, "name": turn.name}
        item["arguments"] = json.dumps(turn.arguments)
    else:
        item = {"type": "message", "id": f"item_{turn.number}", "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": DONE, "annotations": []}]
    item["status"] = "completed"
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18} | details
    response = {"id": f"response_{turn.number}", "object": "response", "created_at": 1, "model": MODEL, "usage": usage}
    return [
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response | {"status": "completed", "output": [item]}},
    ]


def contents(steps, said):
    """Contents of Gemini; the same object whether it is streamed or not."""
    declared = [function for tool in said.get("tools", []) for function in tool.get("functionDeclarations", [])]
    tools = [(one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {}) for one in declared]
    parts = [part for content in said["contents"] for part in content.get("parts", [])]
    turn = Turn(steps, tools, sum("functionResponse" in part for part in parts))
    part = {"text": DONE}
    if turn.name:
        part = {"functionCall": {"id": turn.id, "name": turn.name, "args": turn.arguments}}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage}


class Answerer(BaseHTTPRequestHandler):
    """One request of the agent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.log.write(json.dumps({"path": self.path, "said": said}) + "\n")
        path, steps = self.path.split("?")[0], self.server.steps
        if path.endswith("/chat/completions"):
            answer = chat(steps, said)
            self.stream(answer) if isinstance(answer, list) else self.answer(answer)
        elif path.endswith("/responses"):
            self.stream(responses(steps, said))
        elif path.endswith(":streamGenerateContent"):
            self.stream([contents(steps, said)])
        elif path.endswith(":generateContent"):
            self.answer(contents(steps, said))
        else:
            self.answer({"error": "not a model's address"}, 404)

    def stream(self, events):
        lines = []
        for event in events:
            if isinstance(event, dict) and "type" in event:
                lines.append(f"event: {event['type']}\n")
            lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
        self.send("text/event-stream", "".join(lines))

    def answer(self, value, status=200):
        self.send("application/json", json.dumps(value), status)

    def send(self, kind, text, status=200):
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def loopback_up():
    """Brings the loopback interface of a fresh network namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        asked = fcntl.ioctl(some, SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack("16sh22x", asked)[1]
        if not flags & IFF_UP:
            fcntl.ioctl(some, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--step", action="append", default=[], help="a command line to ask for")
    parser.add_argument("--fill", action="append", default=[], help="a file in which `{port}` is filled in")
    parser.add_argument("--log", required=True, help="where requests are written")
    parser.add_argument("agent", nargs="+", help="the agent's command line")
    options = parser.parse_args()
    loopback_up()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answerer)
    server.steps, server.log = options.step, open(options.log, "a", buffering=1, encoding="utf-8")
    port = str(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in options.fill:
        file = pathlib.Path(name)
        file.write_text(file.read_text().replace("{port}", port))
    environment = {name: value.replace("{port}", port) for name, value in os.environ.items()}
    words = [word.replace("{port}", port) for word in options.agent]
    sys.exit(subprocess.run(words, env=environment, stdin=subprocess.DEVNULL).returncode)


if __name__ == "__main__":
    main()
