"""An MCP server of the official SDK, in both generations of the protocol, that counts what it really does.

    counting.py FILE

Its tool `append` adds a line to FILE, so that whoever reads FILE knows how often it was executed and with what.
"""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("counting")


@server.tool()
def append(text: str) -> str:
    """Appends a line to the file."""
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return f"appended {text}"


@server.tool()
def count() -> str:
    """Reads how many lines the file has."""
    path = Path(sys.argv[1])
    return str(len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0)


if __name__ == "__main__":
    server.run("stdio")
