"""Serve a home from the command line of a test: ``serve_node.py HOME PORT``; prints the address once it listens."""

import asyncio
import sys
from pathlib import Path

from odf_node.http.server import ListeningAddress, serve
from support.exchange_nodes import TestNode


def announce(address: ListeningAddress) -> None:
    print(address.url, flush=True)


if __name__ == "__main__":
    node = TestNode.create(Path(sys.argv[1]))
    asyncio.run(serve(node.served, host="127.0.0.1", port=int(sys.argv[2]), on_ready=announce, grace_s=2.0))
