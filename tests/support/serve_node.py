"""Serve a home from the command line of a test, ``serve_node.py HOME GRACE_S``; prints the address once it listens."""

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from odf_node.http.server import ListeningAddress, serve
from support.exchange_nodes import TestNode
from support.whole_app import add_all_routes


def announce(address: ListeningAddress, _app: web.Application) -> None:
    print(address.url, flush=True)


if __name__ == "__main__":
    node = TestNode.create(Path(sys.argv[1]))
    asyncio.run(
        serve(
            node.served,
            host="127.0.0.1",
            port=0,
            on_ready=announce,
            grace_s=float(sys.argv[2]),
            add_routes=add_all_routes,
        )
    )
