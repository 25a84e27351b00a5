"""What the client scripts share: how a server is started, and how a result or an error becomes JSON."""

import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

CALL_SECONDS_MAX = 90.0
"""How long a call may take where the step does not say: longer than a held call is kept open."""

PAGES_MAX = 100
"""Where a listing that never ends is given up."""


def environment(names):
    """`NAME=VALUE` sets, `NAME` passes on; everything else of this process stays here, so that a report that shows
    the server's environment holds nothing of the machine it ran on beyond what the client always passes."""
    chosen = {}
    for entry in names:
        name, equals, value = entry.partition("=")
        if equals:
            chosen[name] = value
        elif name in os.environ:
            chosen[name] = os.environ[name]
        else:
            sys.exit(f"--env: `{name}` is not set; give it as `{name}=VALUE`")
    return chosen


def parameters(command, env):
    """How to start one server."""
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


def through_tee(command, log):
    """The same server with everything said to and by it written to `log`."""
    return [sys.executable, str(Path(__file__).parent / "tee.py"), "--log", str(log), "--", *command]


def wire(model):
    """A protocol object as it looks on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def failure(error):
    """An `MCPError` as the JSON-RPC error it came from."""
    shown = {"code": error.code, "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return shown


def causes(error):
    """What is inside the groups that task groups wrap every exception in."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


__all__ = ["CALL_SECONDS_MAX", "PAGES_MAX", "Client", "causes", "environment", "failure", "parameters",
           "through_tee", "wire"]
