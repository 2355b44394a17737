r"""The content of an engine as one hash.

It covers every file that can change a result, by its content and its place in the engine, and nothing else: not where
the engine is installed, not times, not what an installer adds. Two installations from one lock have one digest.

    digest = sha3-256 of the lines "<sha3-256 hex>  <place>\n", sorted by place

A place is ``java/...``, ``spark/...``, ``python/...`` (packages), ``library/...`` (Python's own modules) or ``odf/...``
(ours, what the worker imports). What is compiled of the interpreter counts by its full version: distributions build the
same source into other bytes.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from odf_engines.host.file_facts import FileFacts
from odf_engines.host.own_code import own_modules
from odf_engines.spark.launch import class_archives
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

# Of the standard library, what no worker imports, or what differs between machines that have the same version.
_LIBRARY_LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "lib-dynload", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "tkinter",
     "turtledemo", "venv", "distutils", "sitecustomize.py", "usercustomize.py"}
)  # fmt: skip

# The program whose answers are results: what it cannot import changes none.
_PROGRAM = "odf_engines.spark.worker"


def engine_digest(runtime: Runtime, cache: Path) -> Multihash:
    """Return the digest of the engine.

    Args:
        runtime: What is installed.
        cache: Folder for what is known of single files; made if missing, may be deleted at any time.
    """
    return _digest(_hashed(dict(iter_engine_files(runtime, cache)), cache))


def class_data_key(runtime: Runtime, cache: Path) -> str:
    """Return a name for what a class-data archive depends on: the Java runtime and Spark's archives, and their times.

    Java takes an archive only with the very files that it was made with, in the same order, by size and time of change:
    one that was made from the same files of another installation would be passed over, without a word.
    """
    files = dict(_iter_java_files(runtime))
    times = "".join(f"{place} {path.stat().st_mtime_ns}\n" for place, path in sorted(files.items()))
    order = "".join(f"{path.name}\n" for path in class_archives(runtime.jars))
    content = _digest(_hashed(files, cache)).digest
    return hashlib.sha3_256(content + times.encode() + order.encode()).hexdigest()[:32]


def iter_engine_files(runtime: Runtime, cache: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts, in no order; ``cache`` as for ``engine_digest``."""
    yield from _iter_java_files(runtime)
    for name, folder in runtime.packages:
        left_out = _PYSPARK_LEFT_OUT if name == "pyspark" else frozenset()
        yield from _files(folder, f"python/{name}", left_out)
    for place, path in _files(runtime.python_library, "library", _LIBRARY_LEFT_OUT):
        # Build settings of the machine that compiled the interpreter begin like this.
        if path.suffix == ".py" and not path.name.startswith("_sysconfigdata"):
            yield place, path
    for place, path in own_modules([_PROGRAM], dict(runtime.ours), cache).items():
        yield f"odf/{place}", path


def _iter_java_files(runtime: Runtime) -> Iterator[tuple[str, Path]]:
    yield from _files(runtime.java_home, "java")
    yield from _files(runtime.jars, "spark")


def _files(folder: Path, place: str, left_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    for root, folders, names in os.walk(folder):
        inner = Path(root).relative_to(folder)
        here = left_out if inner == Path() else frozenset()
        folders[:] = [name for name in folders if name not in _LEFT_OUT_FOLDERS | here]
        for name in names:
            if Path(name).suffix not in _LEFT_OUT_SUFFIXES and name not in here:
                yield (Path(place) / inner / name).as_posix(), Path(root, name)


def _digest(hashes: dict[str, str]) -> Multihash:
    version = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"
    lines = [f"{digest}  {place}\n" for place, digest in sorted(hashes.items())]
    listed = "".join([f"{version}\n", *lines])
    return Multihash(SHA3_256, hashlib.sha3_256(listed.encode()).digest())


def _hashed(files: dict[str, Path], cache: Path) -> dict[str, str]:
    known = FileFacts(cache, "file-digests", _hash_file)
    hashes = {place: known.get(path) for place, path in files.items()}
    known.save()
    return hashes


def _hash_file(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha3_256").hexdigest()
