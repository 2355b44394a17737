r"""The content of an engine as one hash.

It covers every file that can change a result, by its content and its place in the engine, and nothing else: not where
the engine is installed, not times, not what an installer adds. Two installations from one lock have one digest.

    digest = sha3-256 of the lines "<sha3-256 hex>  <place>\n", sorted by place

A place is ``java/...``, ``spark/...``, ``python/...`` (packages) or ``odf/...`` (ours). The interpreter counts by its
version only: its standard library differs between builds of one version in ways that no result shows.

Hashing 800 MB takes seconds, so the hash of each file is remembered with its size, time and number on disk.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from odf_engines.spark.runtime import Runtime
from odf_protocol.multihash import SHA3_256, Multihash

__all__ = ["class_data_key", "engine_digest", "iter_engine_files"]

# Made by installers and interpreters, or needed by people and compilers only.
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "tests", "test", "include", "examples", "legal", "man", "docs"})
_LEFT_OUT_SUFFIXES = frozenset(
    {".pyc", ".pyo", ".pyi", ".jsa", ".h", ".hpp", ".pxd", ".pyx", ".cmake", ".typed", ".md"}
)

# Of pyspark, what runs inside the worker; the rest are scripts, examples and other clusters' parts.
_PYSPARK_LEFT_OUT = frozenset({"bin", "sbin", "data", "licenses", "kubernetes", "jars"})

# Our host side: it moves and checks files, and cannot change what is in them.
_HOST_SIDE = frozenset(
    {
        "odf_engines/registry.py",
        "odf_engines/spark/class_data.py",
        "odf_engines/spark/digest.py",
        "odf_engines/spark/engine.py",
        "odf_engines/spark/ingest/receive.py",
        "odf_engines/spark/outputs.py",
        "odf_engines/spark/query_receive.py",
        "odf_engines/spark/receive.py",
        "odf_engines/spark/runtime.py",
        "odf_engines/spark/session.py",
    }
)
_HOST_SIDE_FOLDERS = ("odf_engines/grpc/", "odf_engines/sandbox/")

_CACHE_VERSION = 1


def engine_digest(runtime: Runtime, cache: Path) -> Multihash:
    """Return the digest of the engine.

    Args:
        runtime: What is installed.
        cache: Folder for hashes of single files; made if missing, may be deleted at any time.
    """
    return _digest(_hashed(dict(iter_engine_files(runtime)), cache))


def class_data_key(runtime: Runtime, cache: Path) -> str:
    """Return a name for what a class-data archive depends on: the Java runtime and Spark's archives."""
    wanted = {place: path for place, path in iter_engine_files(runtime) if place.startswith(("java/", "spark/"))}
    return _digest(_hashed(wanted, cache)).digest.hex()[:32]


def iter_engine_files(runtime: Runtime) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts, in no order."""
    yield from _files(runtime.java_home, "java")
    for name, folder in runtime.packages:
        if name == "pyspark":
            yield from _files(folder / "jars", "spark")
            yield from _files(folder, f"python/{name}", _PYSPARK_LEFT_OUT)
        else:
            yield from _files(folder, f"python/{name}")
    for name, folder in runtime.ours:
        for place, path in _files(folder, name):
            if place not in _HOST_SIDE and not place.startswith(_HOST_SIDE_FOLDERS):
                yield f"odf/{place}", path


def _files(folder: Path, place: str, left_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    for root, folders, names in os.walk(folder):
        inner = Path(root).relative_to(folder)
        skipped = _LEFT_OUT_FOLDERS | (left_out if inner == Path() else frozenset())
        folders[:] = [name for name in folders if name not in skipped]
        for name in names:
            if Path(name).suffix not in _LEFT_OUT_SUFFIXES:
                yield (Path(place) / inner / name).as_posix(), Path(root, name)


def _digest(hashes: dict[str, str]) -> Multihash:
    version = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    lines = [f"{digest}  {place}\n" for place, digest in sorted(hashes.items())]
    listed = "".join([f"{version}\n", *lines])
    return Multihash(SHA3_256, hashlib.sha3_256(listed.encode()).digest())


def _hashed(files: dict[str, Path], cache: Path) -> dict[str, str]:
    store = cache / f"file-digests-{_CACHE_VERSION}.json"
    known = _load(store)
    hashes: dict[str, str] = {}
    fresh: dict[str, list[str | int]] = {}
    for place, path in files.items():
        found = path.stat()
        # The time of last change is kept by the kernel; a copy that keeps its modification time cannot fake it.
        mark = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        entry = known.get(str(path))
        if entry is None or entry[1:] != mark:
            entry = [_hash_file(path), *mark]
            fresh[str(path)] = entry
        hashes[place] = str(entry[0])
    if fresh:
        _save(store, {**known, **fresh})
    return hashes


def _hash_file(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha3_256").hexdigest()


def _load(store: Path) -> dict[str, list[str | int]]:
    try:
        entries = json.loads(store.read_bytes())
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _save(store: Path, entries: dict[str, list[str | int]]) -> None:
    """Replace the store at once, so that a second process reads the old or the new one; failing costs only time."""
    with contextlib.suppress(OSError):
        store.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=store.parent, prefix=f".{store.name}.")
        with os.fdopen(descriptor, "w") as file:
            json.dump({path: entry for path, entry in entries.items() if Path(path).exists()}, file)
        Path(name).replace(store)
