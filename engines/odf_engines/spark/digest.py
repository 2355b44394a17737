"""The content of Spark's engine as one hash: places ``java/...`` and ``spark/...`` beside those of every guest.

Source: clauses ENGINE-10 and ENGINE-13 in ``spec/extensions/engine-contract.md``.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from odf_engines.host.digest import content_digest, iter_files, iter_runtime_files
from odf_engines.spark.launch import class_archives
from odf_engines.spark.runtime import Runtime
from odf_protocol.multihash import Multihash

# Of pyspark, what runs inside the worker; the rest are scripts, examples and other clusters' parts.
_LEFT_OUT = {"pyspark": frozenset({"bin", "sbin", "data", "licenses", "kubernetes", "jars"})}

_PROGRAM = "odf_engines.spark.worker"


def engine_digest(runtime: Runtime, cache: Path) -> Multihash:
    """Return the digest of the engine.

    Args:
        runtime: What is installed.
        cache: Folder for what is known of single files; made if missing, may be deleted at any time.
    """
    return content_digest(dict(iter_engine_files(runtime, cache)), cache)


def class_data_key(runtime: Runtime, cache: Path) -> str:
    """Return a name for what a class-data archive depends on: the Java runtime and Spark's archives, and their times.

    Java takes an archive only with the very files that it was made with, in the same order, by size and time of change:
    one that was made from the same files of another installation would be passed over, without a word.
    """
    files = dict(_iter_java_files(runtime))
    times = "".join(f"{place} {path.stat().st_mtime_ns}\n" for place, path in sorted(files.items()))
    order = "".join(f"{path.name}\n" for path in class_archives(runtime.jars))
    content = content_digest(files, cache).digest
    return hashlib.sha3_256(content + times.encode() + order.encode()).hexdigest()[:32]


def iter_engine_files(runtime: Runtime, cache: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts, in no order; ``cache`` as for ``engine_digest``."""
    yield from _iter_java_files(runtime)
    yield from iter_runtime_files(runtime, _PROGRAM, cache, left_out=_LEFT_OUT)


def _iter_java_files(runtime: Runtime) -> Iterator[tuple[str, Path]]:
    yield from iter_files(runtime.java_home, "java")
    yield from iter_files(runtime.jars, "spark")
