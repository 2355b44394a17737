r"""The content of an engine as one hash.

It covers every file that can change a result, by its content and its place in the engine, and nothing else: not where
the engine is installed, not times, not what an installer adds. Two installations from one lock have one digest.

    digest = sha3-256 of the lines "<sha3-256 hex>  <place>\n", sorted by place

A place is ``python/...`` (packages), ``library/...`` (Python's own modules) or ``odf/...`` (ours, what the guest's
program imports); a guest that runs on more names places for it. What is compiled of the interpreter counts by its full
version: distributions build the same source into other bytes.

Of ours counts what a guest's program can import, found by reading the code from the program on: each ``import``, also
inside functions, and each text that is the name of a module of ours, which is how the worker names its operations.
What stands under ``TYPE_CHECKING`` never runs. So a change of a module that no worker sees is not a new engine, and no
list has to be kept.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import ast
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from odf_engines.host.runtime import ENTRY, Runtime
from odf_protocol.multihash import SHA3_256, Multihash

_FORMAT = 2
_ENTRY_LENGTH = 5  # the fact, and the mark of the file

_Fact = TypeVar("_Fact")


class FileFacts(Generic[_Fact]):
    """What a function says about files, asked again only for files that changed in size, time or number on disk.

    Hashing 800 MB takes seconds, and reading all code of ours a good part of one; both are asked for again and again.

    Args:
        cache: Folder where it is kept, made if missing; may be deleted at any time. None to keep it nowhere.
        name: Of what is kept there.
        ask: The function; its answers can be written as JSON.
    """

    def __init__(self, cache: Path | None, name: str, ask: Callable[[Path], _Fact]) -> None:
        self._store = None if cache is None else cache / f"{name}-{_FORMAT}.json"
        self._ask = ask
        self._known = {} if self._store is None else _load(self._store)
        self._is_fresh = False

    def get(self, path: Path) -> _Fact:
        """Return the answer for a file."""
        found = path.stat()
        # The time of last change is kept by the kernel; a copy that keeps its modification time cannot fake it.
        mark = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        entry = self._known.get(str(path))
        if entry is None or entry[1:] != mark:
            entry = self._known[str(path)] = [self._ask(path), *mark]
            self._is_fresh = True
        fact: _Fact = entry[0]
        return fact

    def save(self) -> None:
        """Keep what is new."""
        if self._is_fresh and self._store is not None:
            _save(self._store, self._known)


def _load(store: Path) -> dict[str, list[Any]]:
    try:
        entries = json.loads(store.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {path: entry for path, entry in entries.items() if isinstance(entry, list) and len(entry) == _ENTRY_LENGTH}


def _save(store: Path, entries: dict[str, list[Any]]) -> None:
    """Replace the store at once, so that a second process reads the old or the new one; failing costs only time."""
    with contextlib.suppress(OSError):
        store.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=store.parent, prefix=f".{store.name}.")
        with os.fdopen(descriptor, "w") as file:
            json.dump({path: entry for path, entry in entries.items() if Path(path).exists()}, file)
        Path(name).replace(store)


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
    for place, path in own_modules([ENTRY, program], dict(runtime.ours), cache).items():
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


def own_modules(programs: Iterable[str], packages: Mapping[str, Path], cache: Path | None) -> dict[str, Path]:
    """Return place and path of every file of ours that some programs can import, themselves among them.

    Args:
        programs: Names of modules, such as ``odf_engines.confined.entry``.
        packages: Our packages: name and folder.
        cache: Folder for what is known of single files; None for none.

    Returns:
        Paths by place, such as ``odf_protocol/did.py``.
    """
    imports = FileFacts(cache, "own-modules-named", _imports_of)
    found: dict[str, Path] = {}
    seen: set[tuple[str, ...]] = set()  # most names are mentioned by many modules
    waiting = list(programs)
    while waiting:
        parts = waiting.pop().split(".")
        # Importing a module runs the packages around it first.
        for depth in range(1, len(parts) + 1):
            if (name := tuple(parts[:depth])) in seen:
                continue
            seen.add(name)
            module = _find_module(parts[:depth], packages)
            if module is not None and module[0] not in found:
                found[module[0]] = module[1]
                waiting += imports.get(module[1])
    imports.save()
    return found


def _imports_of(path: Path) -> tuple[str, ...]:
    """Return the names that a file of ours imports or mentions as a module, absolute, sorted."""
    reader = _Reader()
    reader.visit(ast.parse(path.read_bytes(), path.name))
    return tuple(sorted(name for name in reader.names if name.startswith("odf_")))


def _find_module(parts: list[str], packages: Mapping[str, Path]) -> tuple[str, Path] | None:
    folder = packages.get(parts[0])
    if folder is None:
        return None
    for name in ("/".join([*parts[1:], "__init__.py"]), f"{'/'.join(parts[1:])}.py"):
        if (path := folder / name).is_file():
            return f"{parts[0]}/{name}", path
    return None


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for each in node.orelse:
                self.visit(each)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            raise ValueError("a relative import cannot be followed")
        # What is imported from a package may be a module of it.
        self.names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and all(part.isidentifier() for part in node.value.split(".")):
            self.names.add(node.value)
