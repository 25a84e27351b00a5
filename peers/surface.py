"""Uses everything that `server-everything` offers, through the official client, and reports what was said.

    surface.py [--mode auto|legacy] [--env NAME[=VALUE]]... [--log FILE] SERVER_CMD...

SERVER_CMD is the server, or the gate in front of it. The report on standard output is one JSON object:

    {"calls":         [{"name": step, "method", "params", "result" | "error" | "cancelled": true}, ...],
     "notifications": [{"method", "params"}, ...]            from the server, in the order received
     "requests":      [{"method", "params", "result" | "error"}, ...]   from the server, with the scripted answers
     "problems":      [text, ...]}                           what did not go as the script expects

It is put together from the bytes on the wire, not from what the client made of them, so a field that the client does
not know is in it as well. Two reports, with and without the gate, are compared by compare.py. Exits 1 when
"problems" is not empty. FILE receives the raw conversation (see tee.py).

Two tools of the server are out of reach: `trigger-sampling-request-async` and `trigger-elicitation-request-async`
exist only for clients that run tasks themselves, which this client does not.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import ValidationError

from peer import PAGES_MAX, Client, causes, environment, parameters, through_tee, wire

STEP_SECONDS_MAX = 30.0
WAIT_SECONDS_MAX = 10.0
DATA_LINK = "data:text/plain,portcullis"


class Script:
    """The client's side of the conversation: its steps, its answers to the server, and which request was which step."""

    def __init__(self):
        self.step = "connect"
        self.steps = {}
        self.problems = []
        self.seen = []
        self.roots_answered = 0
        self.elicit_action = "accept"

    # What the server may ask of the client.

    async def sample(self, _context, _params):
        reply = types.TextContent(type="text", text="a scripted completion")
        return types.CreateMessageResult(role="assistant", content=reply, model="scripted", stop_reason="endTurn")

    async def elicit(self, _context, params):
        if self.elicit_action != "accept":
            return types.ElicitResult(action=self.elicit_action)
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        asked = params.requested_schema.get("properties", {})
        answers = {"name": "Ada Example", "check": True, "integer": 7, "interpretation": "technical"}
        return types.ElicitResult(action="accept", content={k: v for k, v in answers.items() if k in asked})

    async def roots(self, _context):
        self.roots_answered += 1
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/demo", name="demo")])

    async def notified(self, message):
        if isinstance(message, Exception):
            self.problems.append(f"the client could not read a message: {message}")
        else:
            self.seen.append(wire(message))

    async def until(self, what, condition):
        """Wait for something the server does in its own time."""
        for _ in range(int(WAIT_SECONDS_MAX / 0.02)):
            if condition():
                return
            await asyncio.sleep(0.02)
        self.problems.append(f"{self.step}: waited {WAIT_SECONDS_MAX:g} s for {what}")

    def count(self, method):
        return sum(1 for message in self.seen if message.get("method") == method)

    @asynccontextmanager
    async def transport(self, server):
        """The client's own stdio transport, noting which step sent which request."""
        async with stdio_client(server) as (read, write):
            yield read, StepNotingWriter(write, self)

    async def run(self, step, awaitable, expect="result"):
        """One step; `expect` is "result", "error" (of the protocol) or "isError" (of the tool)."""
        self.step = step
        try:
            result = await asyncio.wait_for(awaitable, STEP_SECONDS_MAX)
        except MCPError as error:
            if expect != "error":
                self.problems.append(f"{step}: unexpected error {error.code}: {error.message}")
            return None
        except TimeoutError:
            self.problems.append(f"{step}: no answer in {STEP_SECONDS_MAX:g} s")
            return None
        except ValidationError as error:
            self.problems.append(f"{step}: the client cannot read the answer: {error}")
            return None
        is_error = bool(getattr(result, "is_error", False))
        if expect == "error" or is_error != (expect == "isError"):
            got = wire(result) if hasattr(result, "model_dump") else result
            self.problems.append(f"{step}: expected {expect}, got {json.dumps(got)}")
        return result


class StepNotingWriter:
    """A write stream that remembers the id of every request that leaves during a step."""

    def __init__(self, inner, script):
        self.inner = inner
        self.script = script

    async def send(self, item):
        message = item.message
        if isinstance(message, types.JSONRPCRequest):
            self.script.steps[json.dumps(message.id)] = self.script.step
        await self.inner.send(item)

    async def aclose(self):
        await self.inner.aclose()

    def close(self):
        self.inner.close()

    async def __aenter__(self):
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *details):
        return await self.inner.__aexit__(*details)


def raw(session, method, params=None):
    """A request below the client's own checks, for methods, parameters and results that it does not know."""
    return session._dispatcher.send_raw_request(method, params, {})


async def pages(script, step, call, items):
    """A listing to its last page."""
    cursor = None
    found = []
    for _ in range(PAGES_MAX):
        page = await script.run(step, call(cursor))
        if page is None:
            return found
        found.extend(getattr(page, items))
        cursor = page.next_cursor
        if cursor is None:
            return found
    script.problems.append(f"{step}: more than {PAGES_MAX} pages")
    return found


async def listings(script, client):
    """ping and every listing, and a cursor that no listing gave out."""
    await script.run("ping", client.session.send_ping())
    tools = await pages(script, "tools/list", lambda cursor: client.list_tools(cursor=cursor), "tools")
    await pages(script, "resources/list", lambda cursor: client.list_resources(cursor=cursor), "resources")
    await pages(
        script,
        "resources/templates/list",
        lambda cursor: client.list_resource_templates(cursor=cursor),
        "resource_templates",
    )
    await pages(script, "prompts/list", lambda cursor: client.list_prompts(cursor=cursor), "prompts")
    await script.run("unknown-method", raw(client.session, "x-example/unknown", {"kept": [1, 2.5, "x"]}), "error")
    return {tool.name for tool in tools}


PLAIN_CALLS = [
    # step, tool, arguments, what is expected
    ("echo", "echo", {"message": "héllo \u2028 \"quoted\" \\ 😀"}, "result"),
    ("echo/extra-argument", "echo", {"message": "hello", "extra": {"deep": [None, True]}}, "result"),
    ("echo/missing-argument", "echo", {}, "isError"),
    ("echo/wrong-type", "echo", {"message": 7}, "isError"),
    ("annotated/error", "get-annotated-message", {"messageType": "error", "includeImage": True}, "result"),
    ("annotated/success", "get-annotated-message", {"messageType": "success"}, "result"),
    ("annotated/debug", "get-annotated-message", {"messageType": "debug"}, "result"),
    ("annotated/invalid", "get-annotated-message", {"messageType": "loud"}, "isError"),
    ("env", "get-env", {}, "result"),
    ("resource-links", "get-resource-links", {"count": 4}, "result"),
    ("resource-links/too-many", "get-resource-links", {"count": 11}, "isError"),
    ("resource-reference/text", "get-resource-reference", {"resourceType": "Text", "resourceId": 3}, "result"),
    ("resource-reference/blob", "get-resource-reference", {"resourceType": "Blob", "resourceId": 4}, "result"),
    ("resource-reference/invalid", "get-resource-reference", {"resourceType": "Text", "resourceId": -1}, "isError"),
    ("structured", "get-structured-content", {"location": "Chicago"}, "result"),
    ("structured/invalid", "get-structured-content", {"location": "Atlantis"}, "isError"),
    ("sum", "get-sum", {"a": 2, "b": 0.5}, "result"),
    ("sum/large", "get-sum", {"a": 9007199254740991, "b": -1}, "result"),
    ("sum/invalid", "get-sum", {"a": "two", "b": 2}, "isError"),
    ("tiny-image", "get-tiny-image", {}, "result"),
    ("gzip/link", "gzip-file-as-resource", {"name": "a.gz", "data": DATA_LINK, "outputType": "resourceLink"}, "result"),
    ("gzip/resource", "gzip-file-as-resource", {"name": "b.gz", "data": DATA_LINK, "outputType": "resource"}, "result"),
    ("gzip/invalid", "gzip-file-as-resource", {"name": "c.gz", "data": "no url"}, "isError"),
    ("gzip/scheme", "gzip-file-as-resource", {"name": "c.gz", "data": "ftp://localhost/x"}, "isError"),
    ("unknown-tool", "no-such-tool", {}, "isError"),
    ("roots-list", "get-roots-list", {}, "result"),
    ("sampling", "trigger-sampling-request", {"prompt": "say something", "maxTokens": 20}, "result"),
    ("sampling/invalid", "trigger-sampling-request", {"maxTokens": 20}, "isError"),
]


async def tools(script, client):
    """Each tool with valid and with invalid arguments."""
    called = set()
    for step, tool, arguments, expect in PLAIN_CALLS:
        called.add(tool)
        await script.run(step, client.call_tool(tool, arguments), expect)

    for action in ("accept", "decline", "cancel"):
        script.elicit_action = action
        await script.run(f"elicitation/{action}", client.call_tool("trigger-elicitation-request", {}))
        link = {"url": "https://example.com/consent", "elicitationId": "fixed-1"}
        await script.run(f"elicitation-url/{action}", client.call_tool("trigger-url-elicitation", link))
    script.elicit_action = "accept"
    required = {"url": "https://example.com/consent", "elicitationId": "fixed-2", "errorPath": True}
    await script.run("elicitation-url/error", client.call_tool("trigger-url-elicitation", required), "error")
    await script.run("elicitation-url/retry", client.call_tool("trigger-url-elicitation", required))
    await script.run("elicitation-url/invalid", client.call_tool("trigger-url-elicitation", {"url": "x y"}), "isError")
    return called | {"trigger-elicitation-request", "trigger-url-elicitation"}


async def progress(script, client):
    """Progress notifications, and a call cancelled in the middle."""
    tool = "trigger-long-running-operation"
    reports = []

    async def note(done, _total, _message):
        reports.append(done)

    await script.run("progress", client.call_tool(tool, {"duration": 0.4, "steps": 4}, progress_callback=note))
    await script.until("four progress notifications", lambda: len(reports) == 4)
    await script.run("progress/none", client.call_tool(tool, {"duration": 0.1, "steps": 1}))
    await script.run("progress/invalid", client.call_tool(tool, {"duration": "long"}), "isError")

    script.step = "cancelled"
    before = script.count("notifications/progress")
    call = asyncio.create_task(client.call_tool(tool, {"duration": 1.2, "steps": 3}, progress_callback=note))
    await script.until("a first progress notification", lambda: script.count("notifications/progress") > before)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    # The server goes on to report progress of what it was told to stop.
    await script.until("the last progress", lambda: script.count("notifications/progress") >= before + 3)
    return {tool}


async def resources(script, client):
    """Reading, and subscriptions with their updates."""
    uris = ["demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/8", "demo://resource/session/a.gz"]
    for uri in uris:
        await script.run(f"read/{uri}", client.read_resource(uri))
    await script.run("read/static", client.read_resource("demo://resource/static/document/features.md"))
    await script.run("read/invalid", client.read_resource("demo://resource/dynamic/text/zero"), "error")
    await script.run("read/unknown", client.read_resource("demo://nowhere"), "error")

    await script.run("subscribe", client.subscribe_resource(uris[0]))
    updates = script.count("notifications/resources/updated")
    await script.run("updates/on", client.call_tool("toggle-subscriber-updates", {}))
    await script.until("an update", lambda: script.count("notifications/resources/updated") > updates)
    await script.run("updates/off", client.call_tool("toggle-subscriber-updates", {}))
    await script.run("unsubscribe", client.unsubscribe_resource(uris[0]))
    return {"toggle-subscriber-updates"}


async def prompts(script, client):
    """Prompts, and completion of their arguments and of a template's."""
    getting = [
        ("simple-prompt", None, "result"),
        ("args-prompt", {"city": "Turin", "state": "Piedmont"}, "result"),
        ("args-prompt", {}, "error"),
        ("completable-prompt", {"department": "Sales", "name": "Eve"}, "result"),
        ("resource-prompt", {"resourceType": "Text", "resourceId": "5"}, "result"),
        ("resource-prompt", {"resourceType": "Sound", "resourceId": "5"}, "error"),
        ("no-such-prompt", None, "error"),
    ]
    for number, (name, arguments, expect) in enumerate(getting):
        await script.run(f"prompt/{number}/{name}", client.get_prompt(name, arguments), expect)

    department = types.PromptReference(type="ref/prompt", name="completable-prompt")
    template = types.ResourceTemplateReference(type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}")
    missing = types.PromptReference(type="ref/prompt", name="no-such-prompt")
    completing = [
        (department, {"name": "department", "value": "S"}, None, "result"),
        (department, {"name": "name", "value": ""}, {"department": "Sales"}, "result"),
        (template, {"name": "resourceId", "value": "12"}, None, "result"),
        (template, {"name": "resourceId", "value": "x"}, None, "result"),
        (missing, {"name": "a", "value": ""}, None, "error"),
    ]
    for number, (reference, argument, context, expect) in enumerate(completing):
        await script.run(f"complete/{number}", client.complete(reference, argument, context), expect)


async def logging(script, client):
    """Log levels and log messages."""
    await script.run("log-level/invalid", raw(client.session, "logging/setLevel", {"level": "loud"}), "error")
    await script.run("log-level", client.set_logging_level("debug"))
    messages = script.count("notifications/message")
    await script.run("logging/on", client.call_tool("toggle-simulated-logging", {}))
    await script.until("a log message", lambda: script.count("notifications/message") > messages)
    await script.run("logging/off", client.call_tool("toggle-simulated-logging", {}))

    answered = script.roots_answered
    messages = script.count("notifications/message")
    script.step = "roots-changed"
    await client.send_roots_list_changed()
    await script.until("the server to ask for the roots", lambda: script.roots_answered > answered)
    await script.until("a log message", lambda: script.count("notifications/message") > messages)
    return {"toggle-simulated-logging"}


async def tasks(script, client):
    """A tool that runs as a task, with a question in the middle; and a task that is cancelled."""
    tool = "simulate-research-query"
    session = client.session
    await script.run("task/not-asked-for", client.call_tool(tool, {"topic": "gates"}), "isError")
    for step, ambiguous in (("task", True), ("task-cancel", False)):
        call = {"name": tool, "arguments": {"topic": "gates", "ambiguous": ambiguous}, "task": {"ttl": 60000}}
        created = await script.run(f"{step}/create", raw(session, "tools/call", call))
        if not created:
            continue
        named = {"taskId": created["task"]["taskId"]}
        if ambiguous:
            # Asking for the result is what delivers the server's question.
            await script.run(f"{step}/result", raw(session, "tasks/result", named))
            await script.run(f"{step}/get", raw(session, "tasks/get", named))
        else:
            await script.run(f"{step}/cancel", raw(session, "tasks/cancel", named))
            await script.run(f"{step}/cancel-again", raw(session, "tasks/cancel", named), "error")
    await script.run("tasks/list", raw(session, "tasks/list"))
    await script.run("tasks/get/unknown", raw(session, "tasks/get", {"taskId": "no-such-task"}), "error")
    return {tool}


async def drive(script, server, mode):
    client = Client(
        script.transport(server),
        mode=mode,
        cache=None,
        client_info=types.Implementation(name="surface", version="1"),
        sampling_callback=script.sample,
        elicitation_callback=script.elicit,
        list_roots_callback=script.roots,
        message_handler=script.notified,
    )
    async with client:
        # The server asks for the roots a third of a second after the handshake and logs their number; the tools
        # that depend on the client's capabilities are there by then too.
        script.step = "roots"
        await script.until("the server to ask for the roots", lambda: script.roots_answered > 0)
        await script.until("a log message", lambda: script.count("notifications/message") > 0)
        offered = await listings(script, client)
        called = await tools(script, client)
        called |= await progress(script, client)
        called |= await resources(script, client)
        await prompts(script, client)
        called |= await logging(script, client)
        called |= await tasks(script, client)
        await script.run("tools/list/end", client.list_tools())
    for tool in sorted(offered - called):
        script.problems.append(f"the server offers `{tool}`, which this script does not call")


def answered(entry, answer):
    """`entry` with what came back for it."""
    if answer is None:
        entry["cancelled"] = True
    else:
        entry |= {key: answer[key] for key in ("result", "error") if key in answer}
    return entry


def report(script, log):
    """The conversation in `log` as a report."""
    requests = {"client": {}, "server": {}}
    answers = {"client": {}, "server": {}}
    notifications = []
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        sender = entry["from"]
        message = json.loads(entry["line"])
        identity = json.dumps(message.get("id"))
        if "method" not in message:
            answers[sender][identity] = message
        elif "id" in message:
            requests[sender][identity] = message
        elif sender == "server":
            notifications.append({key: message[key] for key in ("method", "params") if key in message})
    calls = []
    for identity, message in requests["client"].items():
        entry = {"name": script.steps.get(identity, "unknown"), "method": message["method"]}
        entry |= {"params": message["params"]} if "params" in message else {}
        calls.append(answered(entry, answers["server"].get(identity)))
    asked = []
    for identity, message in requests["server"].items():
        entry = {key: message[key] for key in ("method", "params") if key in message}
        asked.append(answered(entry, answers["client"].get(identity)))
    return {"calls": calls, "notifications": notifications, "requests": asked, "problems": script.problems}


def main():
    parser = argparse.ArgumentParser(description="use everything server-everything offers and report what was said")
    parser.add_argument("--mode", choices=["auto", "legacy"], default="auto", help="protocol generation to try first")
    parser.add_argument("--env", action="append", default=[], metavar="NAME[=VALUE]", help="variable for the server")
    parser.add_argument("--log", help="where to keep the raw conversation")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the server and its arguments")
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("name the server's command")

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    script = Script()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(arguments.log or Path(folder) / "conversation.jsonl")
        log.unlink(missing_ok=True)
        server = parameters(through_tee(arguments.command, log), environment(arguments.env))
        try:
            asyncio.run(drive(script, server, arguments.mode))
        except Exception as error:
            script.problems.append(f"{script.step}: the conversation broke off: {causes(error)}")
        json.dump(report(script, log), sys.stdout, indent=1)
    print()
    return 1 if script.problems else 0


if __name__ == "__main__":
    sys.exit(main())
