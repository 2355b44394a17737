"""Forward one TCP port to another, and cut the first connections after some bytes: a bad line for the demo.

usage: cut_cable.py LISTEN_PORT TARGET_PORT BYTES

The first BYTES from the target pass; then every open connection is cut without a word, once. Later ones are left alone.
"""

import asyncio
import sys

HOST = "127.0.0.1"
CHUNK = 16_384


async def main(listen_port: int, target_port: int, budget: int) -> None:
    """Serve until killed."""
    left = budget
    cut = False

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def forward_until_cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left, cut
        while chunk := await reader.read(CHUNK):
            if not cut and len(chunk) >= left:
                writer.write(chunk[:left])
                await writer.drain()
                cut = True
                print(f"(the line is cut after {budget:,} bytes)", flush=True)
                writer.transport.abort()
                return
            left -= len(chunk)
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_target, to_target = await asyncio.open_connection(HOST, target_port)
        try:
            await asyncio.gather(forward(reader, to_target), forward_until_cut(from_target, writer))
        except ConnectionError:
            writer.transport.abort()
        finally:
            to_target.close()

    server = await asyncio.start_server(connected, HOST, listen_port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
