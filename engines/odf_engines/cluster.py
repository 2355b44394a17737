"""A standalone cluster as the operator's settings describe it, and whether it is there.

Source: clauses CLUSTER-1, CLUSTER-5 and CLUSTER-6 in ``spec/extensions/engine-cluster.md``.
"""

import re
import socket
import stat
from collections.abc import Mapping
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

_MASTER = re.compile(r"spark://([A-Za-z0-9_.-]{1,253}:[0-9]{1,5}(?:,[A-Za-z0-9_.-]{1,253}:[0-9]{1,5})*)")
_HIGHEST_PORT = 65_535
_ANSWER_S = 5.0  # guess: a master on the network answers within milliseconds

# What must be the same at every end of the cluster; Spark's own default for each is weaker (Spark "Security").
_ENCRYPTION: Final = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
}
# Of Java on the executors, what could change a result (ENGINE-9).
_EXECUTOR_JAVA: Final = (
    "-XX:+UnlockDiagnosticVMOptions -XX:-UseLibmIntrinsic -Dfile.encoding=UTF-8 -Duser.country=US -Duser.language=en"
    " -Duser.timezone=UTC -Djava.net.preferIPv4Stack=true"
)


def parse_masters(text: str) -> tuple[tuple[str, int], ...]:
    """Read the address of a standalone cluster, which may have several masters.

    Returns:
        Host and port of each.

    Raises:
        ValueError: It is no ``spark://host:port[,host:port…]``.
    """
    found = _MASTER.fullmatch(text)
    pairs = [each.rsplit(":", 1) for each in found[1].split(",")] if found else []
    if not pairs or any(not 0 < int(port) <= _HIGHEST_PORT for _host, port in pairs):
        raise ValueError(f"expected {LOCAL_MASTER} or spark://host:port, found {text!r}")
    return tuple((host, int(port)) for host, port in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A standalone cluster that runs tasks of this node's own steps.

    Attributes:
        master: As ``parse_masters`` reads it.
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

    def settings(self, address: str) -> Mapping[str, str]:
        """Return Spark's settings for a driver at this address; none of them is secret, none changes a result."""
        return {
            **_ENCRYPTION,
            "spark.master": self.master,
            "spark.cores.max": str(self.cores),
            "spark.executor.cores": str(self.executor_cores),
            "spark.executor.memory": f"{self.executor_memory_bytes}b",
            "spark.executor.extraJavaOptions": _EXECUTOR_JAVA,
            "spark.driver.bindAddress": address,
            "spark.driver.host": self.driver_address or address,
        }

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

    def find_driver_address(self) -> str:
        """Connect to the master, and return the address of this machine on the way to it.

        Raises:
            ClusterUnavailableError: No master takes a connection.
        """
        refusals = []
        for host, port in parse_masters(self.master):
            try:
                with socket.socket(socket.AF_INET) as line:  # the sandbox has no other family (SANDBOX-6)
                    line.settimeout(_ANSWER_S)
                    line.connect((host, port))
                    return str(line.getsockname()[0])
            except OSError as error:
                refusals.append(f"{host}:{port}: {error.strerror or error}")
        raise ClusterUnavailableError(self.master, f"no master takes a connection ({'; '.join(refusals)})")
