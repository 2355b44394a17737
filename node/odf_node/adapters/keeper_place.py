"""Where the keeper of a home's warm engine is found, and whose turn it is to talk to it.

Source: clauses WARM-1 and WARM-4 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

IDLE_VARIABLE: Final = "ODF_NODE_ENGINE_IDLE_S"
DEFAULT_IDLE_S: Final = 60.0  # guess: a person thinks between two commands; a gigabyte of memory waits meanwhile
KEY_BYTES: Final = 32


def idle_seconds(environment: "os._Environ[str] | dict[str, str]") -> float:
    """Read how long a warm engine waits for the next command; 0: none is kept."""
    try:
        return max(0.0, float(environment.get(IDLE_VARIABLE, DEFAULT_IDLE_S)))
    except ValueError:
        return DEFAULT_IDLE_S


@dataclass(frozen=True, slots=True)
class KeeperPlace:
    """Where the keeper of one engine of one home is found."""

    folder: Path
    engine: str

    @property
    def socket(self) -> Path:
        """Where the keeper listens."""
        return self.folder / f"{self.engine}.sock"

    @property
    def lock(self) -> Path:
        """Locked by the one command that talks to the keeper; others do without."""
        return self.folder / f"{self.engine}.lock"

    @contextlib.contextmanager
    def address(self) -> Iterator[str]:
        """Give the socket's name for the kernel, which allows 107 characters, while homes may lie deep."""
        descriptor = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{descriptor}/{self.socket.name}"
        finally:
            os.close(descriptor)

    @property
    def key(self) -> Path:
        """What a command shows to the keeper, and the keeper to the command."""
        return self.folder / f"{self.engine}.key"

    def get_or_create_key(self) -> bytes:
        """Read the key, making it when there is none; concurrent callers agree."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            temporary = self.folder / f".key-{secrets.token_hex(8)}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_bytes(KEY_BYTES))
            os.close(descriptor)
            try:
                os.link(temporary, self.key)  # fails where another caller was first
            finally:
                temporary.unlink()
        return self.key.read_bytes()

    def take_turn(self) -> int | None:
        """Take the turn to talk to the keeper, until the descriptor is closed; None while somebody else has it."""
        lock = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock
