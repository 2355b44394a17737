"""A real MQTT broker on loopback, in a thread, and messages for it."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as mqtt
import paho.mqtt.publish
from amqtt.broker import Broker
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

USER, PASSWORD = "reader", "p@ss/w?rd %:#"
START_S = 120.0


@contextmanager
def mqtt_broker(folder: Path) -> Iterator[int]:
    """Serve until left whoever knows the password; give the port."""
    passwords, quick = folder / "passwords", PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
    passwords.write_text(f"{USER}:{quick.hash(PASSWORD)}\n")
    # Held until the broker listens there, so that nobody else gets it: of several that are bound one may listen.
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.FileAuthPlugin": {"password_file": str(passwords)}},
    }
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        broker = Broker(config)
        await broker.start()
        started.set()
        await stop.wait()
        await broker.shutdown()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        with held:
            assert started.wait(START_S)
        yield port
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(60)


def publish(port: int, *payloads: str | bytes, topic: str = "a/b") -> None:
    """Send messages, and wait until the broker has them."""
    messages = [{"topic": topic, "payload": each, "qos": 1} for each in payloads]
    paho.mqtt.publish.multiple(
        messages,
        hostname="127.0.0.1",
        port=port,
        auth={"username": USER, "password": PASSWORD},
        protocol=mqtt.MQTTv311,
    )
