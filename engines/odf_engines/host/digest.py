r"""The content of an engine as one hash.

It covers every file that can change a result, by its content and its place in the engine, and nothing else: not where
the engine is installed, not times, not what an installer adds. Two installations from one lock have one digest.

    digest = sha3-256 of the lines "<sha3-256 hex>  <place>\n", sorted by place

A place is ``python/...`` (packages), ``library/...`` (Python's own modules) or ``odf/...`` (ours, what the guest's
program imports); a guest that runs on more names places for it. What is compiled of the interpreter counts by its full
version: distributions build the same source into other bytes.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from odf_engines.host.file_facts import FileFacts
from odf_engines.host.own_code import own_modules
from odf_engines.host.runtime import Runtime
from odf_protocol.multihash import SHA3_256, Multihash

# Made by installers and interpreters, or needed by people and compilers only.
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "tests", "test", "include", "examples", "legal", "man", "docs"})
_LEFT_OUT_SUFFIXES = frozenset(
    {".pyc", ".pyo", ".pyi", ".jsa", ".h", ".hpp", ".pxd", ".pyx", ".cmake", ".typed", ".md"}
)

# Of the standard library, what no worker imports, or what differs between machines that have the same version.
_LIBRARY_LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "lib-dynload", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "tkinter",
     "turtledemo", "venv", "distutils", "sitecustomize.py", "usercustomize.py"}
)  # fmt: skip


def content_digest(files: Mapping[str, Path], cache: Path) -> Multihash:
    """Return the digest over files by their place.

    Args:
        files: Path by place.
        cache: Folder for what is known of single files; made if missing, may be deleted at any time.
    """
    hashes = _hashed(files, cache)
    version = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"
    lines = [f"{digest}  {place}\n" for place, digest in sorted(hashes.items())]
    listed = "".join([f"{version}\n", *lines])
    return Multihash(SHA3_256, hashlib.sha3_256(listed.encode()).digest())


def iter_runtime_files(
    runtime: Runtime, program: str, cache: Path | None, *, left_out: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file of Python's, of its packages and of ours that counts, in no order.

    Args:
        runtime: What is installed.
        program: Module whose answers are results: what it cannot import changes none.
        cache: As for ``content_digest``; None for none.
        left_out: By package, what lies in its folder and does not count.
    """
    for name, folder in runtime.packages:
        yield from iter_files(folder, f"python/{name}", left_out.get(name, frozenset()))
    for place, path in iter_files(runtime.python_library, "library", _LIBRARY_LEFT_OUT):
        # Build settings of the machine that compiled the interpreter begin like this.
        if path.suffix == ".py" and not path.name.startswith("_sysconfigdata"):
            yield place, path
    for place, path in own_modules([program], dict(runtime.ours), cache).items():
        yield f"odf/{place}", path


def iter_files(folder: Path, place: str, left_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file of a folder that counts; ``left_out`` names what does not, at its top."""
    for root, folders, names in os.walk(folder):
        inner = Path(root).relative_to(folder)
        here = left_out if inner == Path() else frozenset()
        folders[:] = [name for name in folders if name not in _LEFT_OUT_FOLDERS | here]
        for name in names:
            if Path(name).suffix not in _LEFT_OUT_SUFFIXES and name not in here:
                yield (Path(place) / inner / name).as_posix(), Path(root, name)


def _hashed(files: Mapping[str, Path], cache: Path) -> dict[str, str]:
    known = FileFacts(cache, "file-digests", hash_file)
    hashes = {place: known.get(path) for place, path in files.items()}
    known.save()
    return hashes


def hash_file(path: Path) -> str:
    """Return the SHA3-256 of a file in hexadecimal digits."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha3_256").hexdigest()
