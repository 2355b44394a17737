"""Standalone clusters of Spark: addresses of their masters, whether one answers, and settings for a driver.

Source: clauses CLUSTER-1, CLUSTER-5 and CLUSTER-6 in ``spec/extensions/engine-cluster.md``.
"""

import re
import socket
from collections.abc import Mapping
from typing import Final

from odf_engines.cluster import LOCAL_MASTER, Cluster
from odf_engines.errors import ClusterUnavailableError

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


def cluster_settings(cluster: Cluster, address: str) -> Mapping[str, str]:
    """Return Spark's settings for a driver at this address; none of them is secret, none changes a result."""
    return {
        **_ENCRYPTION,
        "spark.master": cluster.master,
        "spark.cores.max": str(cluster.cores),
        "spark.executor.cores": str(cluster.executor_cores),
        "spark.executor.memory": f"{cluster.executor_memory_bytes}b",
        "spark.executor.extraJavaOptions": _EXECUTOR_JAVA,
        "spark.driver.bindAddress": address,
        "spark.driver.host": cluster.driver_address or address,
    }


def find_driver_address(cluster: Cluster) -> str:
    """Connect to the master, and return the address of this machine on the way to it.

    Raises:
        ClusterUnavailableError: No master takes a connection.
    """
    refusals = []
    for host, port in parse_masters(cluster.master):
        try:
            with socket.socket(socket.AF_INET) as line:  # the sandbox has no other family (SANDBOX-6)
                line.settimeout(_ANSWER_S)
                line.connect((host, port))
                return str(line.getsockname()[0])
        except OSError as error:
            refusals.append(f"{host}:{port}: {error.strerror or error}")
    raise ClusterUnavailableError(cluster.master, f"no master takes a connection ({'; '.join(refusals)})")
