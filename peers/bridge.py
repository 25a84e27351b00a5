"""A stdio server that is a remote one: passes messages on through the official client's Streamable HTTP transport.

    bridge.py [--token FILE] URL

Puts a server behind an address in front of scripts that start servers, with nothing of ours between. FILE holds a
bearer token. Only for revisions with sessions: later ones have headers that a client sets itself.
"""

import argparse
import asyncio
from pathlib import Path

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server

SILENT_SECONDS_MAX = 120.0


async def passing(source, sink):
    async for message in source:
        if isinstance(message, Exception):
            raise message
        await sink.send(message)


async def bridge(url, token):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SILENT_SECONDS_MAX) as http,
        stdio_server() as (from_client, to_client),
        streamable_http_client(url, http_client=http) as (from_server, to_server),
    ):
        answers = asyncio.create_task(passing(from_server, to_client))
        await passing(from_client, to_server)
        answers.cancel()


def main():
    parser = argparse.ArgumentParser(description="speak to a remote MCP server over standard input and output")
    parser.add_argument("--token", type=Path, metavar="FILE", help="a file with a bearer token")
    parser.add_argument("url")
    arguments = parser.parse_args()
    token = arguments.token.read_text(encoding="utf-8").strip() if arguments.token else None
    asyncio.run(bridge(arguments.url, token))


if __name__ == "__main__":
    main()
