"""A cluster as the operator's settings describe it, and whether what it needs of this machine is there.

What an address may be, and how the cluster is asked, says its engine (``odf_engines.engine.ClusterEngine``).

Source: clauses CLUSTER-1 and CLUSTER-5 in ``spec/extensions/engine-cluster.md``.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_engines.errors import ClusterUnavailableError

LOCAL_MASTER: Final = "local[*]"
"""Spark inside the sandbox of one process: what runs where no cluster is set, and for all work of others."""

MIN_EXECUTOR_BYTES: Final = 471_859_200
"""Heap below which Spark starts no executor (UnifiedMemoryManager: one and a half of what it reserves)."""
MIN_SECRET_BYTES: Final = 32  # guess: 128 bits in hexadecimal digits
MAX_SECRET_BYTES: Final = 4096  # guess: of a file that is a secret and not a mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that runs tasks of this node's own steps.

    Attributes:
        master: Its address, as its engine reads it.
        shared_folder: Existing; the same path, with the same files, here and on every worker.
        secret: File that only this user can read, with what the cluster asks of whoever speaks to it.
        driver_address: IPv4 address at which workers reach this machine; empty: the one it reaches the master from.
        cores: Of all executors together.
        executor_cores: Of each.
        executor_memory_bytes: Java heap of each.
    """

    master: str
    shared_folder: Path
    secret: Path
    driver_address: str = ""
    cores: int = 4
    executor_cores: int = 1
    executor_memory_bytes: int = 1 << 30

    def check_files(self) -> None:
        """Look for what has to be on this machine.

        Raises:
            ClusterUnavailableError: The folder or the secret is missing, or others can read the secret.
        """
        if not self.shared_folder.is_absolute() or not self.shared_folder.is_dir():
            raise ClusterUnavailableError(self.master, f"there is no folder {self.shared_folder} (spark_shared_folder)")
        try:
            status = self.secret.stat()
        except OSError as error:
            raise ClusterUnavailableError(self.master, f"{self.secret} (spark_secret): {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            reason = f"{self.secret} (spark_secret) must be a file that only its owner can read: chmod 600"
            raise ClusterUnavailableError(self.master, reason)
        if not MIN_SECRET_BYTES <= status.st_size <= MAX_SECRET_BYTES:
            reason = f"{self.secret} (spark_secret): expected {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes"
            raise ClusterUnavailableError(self.master, reason)
