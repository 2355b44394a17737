"""The daemon as a process, with its log: settings, signals, certificates."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

WAIT_S = 240  # guess: a machine that is slow and busy


@dataclass(frozen=True)
class Daemon:
    """A running ``odf-node serve``."""

    process: "subprocess.Popen[bytes]"
    url: str
    log_file: Path

    def log(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the log about one kind of event, so far."""
        lines = [line for line in self.log_file.read_text().splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many lines about the event are there."""
        return wait_until(lambda: lines if len(lines := self.log(event)) >= count else None, self.log_file.read_text)

    def reload(self, count: int = 1) -> dict[str, Any]:
        """Send SIGHUP and return the line that answers it, the ``count``-th of its kind."""
        self.process.send_signal(signal.SIGHUP)
        return wait_until(
            lambda: (
                lines[count - 1] if len(lines := [*self.log("reloaded"), *self.log("reload-failed")]) >= count else None
            ),
            self.log_file.read_text,
        )


@contextmanager
def daemon(
    home: Path,
    *options: str,
    settings: str = "",
    environment: Mapping[str, str] | None = None,
    around: Sequence[str | Path] = (),
) -> Iterator[Daemon]:
    """Run the daemon of a home on a free port with these settings; it must end in order after SIGTERM.

    ``around`` is a program that runs it, such as bubblewrap with what it shows of the disk.
    """
    ready, log = home.with_suffix(".ready"), home.with_suffix(".log")
    configuration = home.with_suffix(".toml")
    configuration.write_text(settings)
    words = ["serve", "--home", str(home), "--config", str(configuration), "--ready-file", str(ready), *options]
    if "listen" not in settings:
        words += ["--http-port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*around, sys.executable, "-m", "odf_node", *words],
            stderr=stream,
            env=os.environ | dict(environment or {}),
        )
    try:

        def find_address() -> str | None:
            assert process.poll() is None, log.read_text()
            return ready.read_text().strip() if ready.exists() else None

        yield Daemon(process, wait_until(find_address, log.read_text), log)
        if process.poll() is None:
            for pid in _children(process.pid) if around else [process.pid]:
                os.kill(pid, signal.SIGTERM)
            assert process.wait(timeout=WAIT_S) == 0, log.read_text()
    finally:
        if process.poll() is None:
            for pid in [*(_children(process.pid) if around else []), process.pid]:
                os.kill(pid, signal.SIGKILL)
        process.wait()
        ready.unlink(missing_ok=True)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(find: Callable[[], Any], explain: Callable[[], str]) -> Any:
    """Ask until the answer is something; asking is the only way to learn it from another process."""
    deadline = time.monotonic() + WAIT_S
    while (found := find()) is None:
        assert time.monotonic() < deadline, explain()
        time.sleep(0.02)
    return found


def make_certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that vouches for itself, and its key."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / f"{name}.certificate.pem", folder / f"{name}.key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_file, key_file
