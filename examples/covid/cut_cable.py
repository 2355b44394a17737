"""Forward one TCP port to another until some bytes have passed, then break down for good: a bad line for the demo.

Prints the port once it listens there (0: any that is free), and in the end what became of it.

usage: cut_cable.py LISTEN_PORT TARGET_PORT BYTES
"""

import asyncio
import os
import sys

HOST = "127.0.0.1"
CHUNK = 16_384


async def main(listen_port: int, target_port: int, budget: int) -> None:
    """Forward until BYTES have come from the target."""
    left = budget
    cut = asyncio.Event()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()

    async def forward_within_budget(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        while chunk := await reader.read(CHUNK):
            writer.write(chunk[:left])
            await writer.drain()
            left -= min(left, len(chunk))
            if not left:
                writer.transport.abort()
                cut.set()
                return

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_target, to_target = await asyncio.open_connection(HOST, target_port)
            await asyncio.gather(forward(reader, to_target), forward_within_budget(from_target, writer))
        except (ConnectionError, OSError):
            writer.transport.abort()

    server = await asyncio.start_server(connected, HOST, listen_port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await cut.wait()
    print(f"(the line broke after {budget:,} bytes)", flush=True)
    os._exit(0)  # a broken line does not say goodbye to anybody


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
