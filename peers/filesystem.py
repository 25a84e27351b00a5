"""Makes the tool calls it is told to, through the official client, on one or more servers at once.

    filesystem.py --servers '[["CMD", "ARG", ...], ...]' [--steps JSON | --steps @FILE | < JSON]
                  [--mode auto|legacy] [--env NAME[=VALUE]]... [--log PREFIX] [--elicit JSON]

The servers (the gate in front of each, or not) all belong to this one process, as an agent's do. The steps are a JSON
list, taken in order:

    {"tool": NAME, "arguments": {...}, "server": 0, "id": TEXT, "timeout_s": 90, "meta": {...},
     "background": false, "write_result": PATH}     a call; in the background, the next step does not wait for it;
                                                    PATH receives its entry of the report once it has one
    {"join": ID}                                    wait for a call in the background
    {"cancel": ID}                                  give it up
    {"list_tools": 0}                               a server's tools; also `list_prompts`, `list_resources`,
                                                    `list_resource_templates`
    {"read_resource": URI, "server": 0}             a resource
    {"wait_file": PATH, "timeout_s": 30}            wait until a file exists
    {"touch": PATH}                                 make a file, for whoever waits for this script

With `--elicit`, a JSON list of answers such as {"action": "accept", "content": {...}}, the client shows forms: each
question to the user takes the next answer, and when there is none left, `cancel`. The report has the questions in `asked`.

The report on standard output: {"servers": [{"name", "version", "protocol"}],
"steps": [{"id", "tool", "server", "ms", "isError", "text", "structuredContent", "result"} |
          {"id", "tool", "server", "ms", "error": {"code", "message", "data"}} | ...]}, in the order of the steps.
`text` is the result's text blocks, joined by newlines; `result` is all of it. Calls still in the background at the
end are waited for. Exits 0 when every step was done, whatever the answers were; 1 when a server or a step was not.
PREFIX0.jsonl, PREFIX1.jsonl, ... receive the raw conversations (see tee.py).
"""

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import mcp_types as types
from mcp.shared.exceptions import MCPError

from peer import CALL_SECONDS_MAX, PAGES_MAX, Client, causes, environment, failure, parameters, through_tee, wire

WAIT_SECONDS_MAX = 30.0
POLL_SECONDS = 0.02
STEPS_MAX = 10_000


class StepError(Exception):
    """A step that could not be done: the script's mistake or the test's, not the server's answer."""


def write_whole(path, value):
    """A file that is there only when it is complete."""
    partial = f"{path}.partial"
    Path(partial).write_text(json.dumps(value), encoding="utf-8")
    os.replace(partial, path)


async def call(client, step, entry):
    """One tool call; fills in `entry`."""
    start = time.monotonic()
    try:
        answer = await client.call_tool(
            step["tool"],
            step.get("arguments", {}),
            read_timeout_seconds=step.get("timeout_s", CALL_SECONDS_MAX),
            meta=step.get("meta"),
        )
        result = wire(answer)
        entry["isError"] = answer.is_error
        entry["text"] = "\n".join(block.text for block in answer.content if isinstance(block, types.TextContent))
        if answer.structured_content is not None:
            entry["structuredContent"] = result["structuredContent"]
        entry["result"] = result
    except MCPError as error:
        entry["error"] = failure(error)
    except asyncio.CancelledError:
        entry["cancelled"] = True
    entry["ms"] = round((time.monotonic() - start) * 1000, 1)
    if "write_result" in step:
        write_whole(step["write_result"], entry)


LISTS = {"list_tools": "tools", "list_prompts": "prompts", "list_resources": "resources",
         "list_resource_templates": "resource_templates"}


async def list_all(client, method, entry):
    listed = []
    cursor = None
    for _ in range(PAGES_MAX):
        page = await getattr(client, method)(cursor=cursor)
        listed.extend(wire(item) for item in getattr(page, LISTS[method]))
        cursor = page.next_cursor
        if cursor is None:
            entry[LISTS[method]] = listed
            return
    raise StepError(f"more than {PAGES_MAX} pages of {LISTS[method]}")


async def wait_file(path, timeout):
    end = time.monotonic() + timeout
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise StepError(f"`{path}` did not appear within {timeout:g} s")
        await asyncio.sleep(POLL_SECONDS)


def user(answers, asked):
    """Answers questions to the user in order, and keeps them."""
    async def answer(_context, params):
        asked.append(wire(params))
        given = answers.pop(0) if answers else {"action": "cancel"}
        return types.ElicitResult(action=given["action"], content=given.get("content"))
    return answer


class Run:
    def __init__(self, clients):
        self.clients = clients
        self.background = {}
        self.entries = []

    def client(self, number):
        if not 0 <= number < len(self.clients):
            raise StepError(f"there is no server {number}: `--servers` names {len(self.clients)}")
        return self.clients[number]

    def running(self, identity):
        if identity not in self.background:
            raise StepError(f"no call `{identity}` is in the background")
        return self.background.pop(identity)

    async def step(self, number, step):
        entry = {"id": step.get("id", str(number))}
        self.entries.append(entry)
        if "tool" in step:
            server = step.get("server", 0)
            entry |= {"tool": step["tool"], "server": server}
            work = call(self.client(server), step, entry)
            if step.get("background", False):
                self.background[entry["id"]] = asyncio.create_task(work)
                # Lets the request leave before the next step.
                await asyncio.sleep(POLL_SECONDS)
            else:
                await work
        elif "join" in step:
            await self.running(step["join"])
            entry["joined"] = step["join"]
        elif "cancel" in step:
            task = self.running(step["cancel"])
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            entry["cancelled"] = step["cancel"]
        elif method := next((method for method in LISTS if method in step), None):
            await list_all(self.client(step[method]), method, entry)
        elif "read_resource" in step:
            entry["result"] = wire(await self.client(step.get("server", 0)).read_resource(step["read_resource"]))
        elif "wait_file" in step:
            await wait_file(step["wait_file"], step.get("timeout_s", WAIT_SECONDS_MAX))
            entry["found"] = step["wait_file"]
        elif "touch" in step:
            write_whole(step["touch"], None)
            entry["touched"] = step["touch"]
        else:
            raise StepError(f"step {number} is none that this script knows: {json.dumps(step)}")


async def run(arguments, servers, steps, report):
    env = environment(arguments.env)
    asks = {}
    if arguments.elicit is not None:
        report["asked"] = []
        asks["elicitation_callback"] = user(json.loads(arguments.elicit), report["asked"])
    async with AsyncExitStack() as stack:
        clients = []
        for number, command in enumerate(servers):
            if arguments.log:
                log = Path(f"{arguments.log}{number}.jsonl")
                log.unlink(missing_ok=True)
                command = through_tee(command, log)
            identity = types.Implementation(name="filesystem", version="1")
            client = Client(parameters(command, env), mode=arguments.mode, cache=None, client_info=identity,
                            **asks)
            clients.append(await stack.enter_async_context(client))
            about = client.server_info
            shown = {"name": about.name, "version": about.version} if about else {}
            report["servers"].append(shown | {"protocol": client.protocol_version})
        work = Run(clients)
        report["steps"] = work.entries
        for number, step in enumerate(steps):
            await work.step(number, step)
        await asyncio.gather(*work.background.values())


def read_steps(given):
    text = sys.stdin.read() if given is None else given
    if text.startswith("@"):
        text = Path(text[1:]).read_text(encoding="utf-8")
    steps = json.loads(text)
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps) or len(steps) > STEPS_MAX:
        raise ValueError(f"the steps are not a list of at most {STEPS_MAX} objects")
    return steps


def main():
    parser = argparse.ArgumentParser(description="make tool calls and report what came back")
    parser.add_argument("--servers", required=True, help="JSON list of commands, each a list of strings")
    parser.add_argument("--steps", help="JSON list of steps, or @FILE; else standard input")
    parser.add_argument("--mode", choices=["auto", "legacy"], default="auto", help="protocol generation to try first")
    parser.add_argument("--env", action="append", default=[], metavar="NAME[=VALUE]", help="variable for the servers")
    parser.add_argument("--log", metavar="PREFIX", help="where to keep the raw conversations")
    parser.add_argument("--elicit", metavar="JSON", help="answers to questions to the user; else there is no user")
    arguments = parser.parse_args()
    try:
        servers = json.loads(arguments.servers)
        steps = read_steps(arguments.steps)
    except (OSError, ValueError) as error:
        parser.error(str(error))

    report = {"servers": [], "steps": []}
    try:
        asyncio.run(run(arguments, servers, steps, report))
    except Exception as error:
        report["problem"] = causes(error)
    json.dump(report, sys.stdout, indent=1)
    print()
    return 1 if "problem" in report else 0


if __name__ == "__main__":
    sys.exit(main())
