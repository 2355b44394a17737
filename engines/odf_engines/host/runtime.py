"""What an engine brings into the sandbox: its program, and the parts of the machine that it runs on.

The host knows of an engine what stands here and nothing else. How a guest's program behaves is in ``worker``.

A program is one in Python, compiled beforehand: the sandbox can keep no compiled Python, so every start would compile
hundreds of modules again, and not all installers compile what they install. What is compiled lies where Python keeps
it, beside the sources, and is taken only with the size and time of change of its source: it is no part of the digest.

Everything appears at the same path on every machine, so that no result, and nothing made once per machine, can depend
on where a node is installed. A guest that runs on more than Python adds its own parts in a subclass.

Source: clauses SANDBOX-3, ENGINE-3, ENGINE-4, ENGINE-10 and ENGINE-24 in ``spec/extensions``.
"""

import compileall
import importlib.util
import json
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.profile import Mount

_OURS = ("odf_engines", "odf_protocol")

_SYSTEM_LIBRARIES = Path("/usr/lib")
_LOADER_CACHE = Path("/etc/ld.so.cache")


def package_folder(name: str) -> Path:
    """Return the folder of an installed package.

    Raises:
        SandboxUnavailableError: It is missing.
    """
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise SandboxUnavailableError(f"the package {name} is not installed")
    return Path(next(iter(found.submodule_search_locations))).resolve()


def find_module_file(name: str) -> Path:
    """Return the file of an installed module that is no package.

    Raises:
        SandboxUnavailableError: It is missing.
    """
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SandboxUnavailableError(f"the package {name} is not installed")
    return Path(found.origin).resolve()


def find_packages(names: Iterable[str]) -> tuple[tuple[str, Path], ...]:
    """Return name and folder of installed packages, and of the shared libraries that wheels put beside them, sorted.

    Raises:
        SandboxUnavailableError: One is missing.
    """
    packages = []
    for name in names:
        folder = package_folder(name)
        packages.append((name, folder))
        libraries = folder.parent / f"{name}.libs"
        if libraries.is_dir():
            packages.append((libraries.name, libraries))
    return tuple(sorted(packages))


def _find_python() -> Path:
    return Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # noqa: SLF001 - has no public name


def _find_python_library() -> Path:
    return Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})).resolve()


def find_own_packages(*plug_ins: str) -> tuple[tuple[str, Path], ...]:
    """Return name and folder of the node's own packages that guests run, and of these plug-ins, sorted."""
    return tuple((name, package_folder(name)) for name in sorted({*_OURS, *plug_ins}))


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Folders and files of this machine that make up a guest.

    Attributes:
        packages: Import name and folder of what the guest needs beside Python, sorted.
        python: The interpreter, without the links of a virtual environment.
        python_library: Its standard library.
        ours: As ``packages``, of the node's own.
    """

    packages: tuple[tuple[str, Path], ...]
    python: Path = field(default_factory=_find_python)
    python_library: Path = field(default_factory=_find_python_library)
    ours: tuple[tuple[str, Path], ...] = field(default_factory=find_own_packages)

    def parts(self) -> tuple[Mount, ...]:
        """Return how the sandbox shows what this guest alone has."""
        return ()

    def mounts(self) -> tuple[Mount, ...]:
        """Return how the sandbox shows it."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        shown = [
            Mount(_SYSTEM_LIBRARIES, "/usr/lib"),
            Mount(_LOADER_CACHE, "/etc/ld.so.cache"),
            Mount(self.python, "/runtime/python/bin/python3"),
            Mount(self.python_library, f"/runtime/python/lib/{version}"),
            *self.parts(),
        ]
        if (loaders := Path("/usr/lib64")).is_dir() and not loaders.is_symlink():
            shown.append(Mount(loaders, "/usr/lib64"))
        shown += [
            Mount(library, f"/runtime/python/lib/{library.name}")
            for library in sorted((self.python.parent.parent / "lib").glob("libpython3*.so*"))
        ]
        shown += [Mount(folder, f"/runtime/site/{name}") for name, folder in self.packages]
        shown += [Mount(folder, f"/runtime/ours/{name}") for name, folder in self.ours]
        return tuple(shown)

    def links(self) -> dict[str, str]:
        """Return the links of the root folder that programs are built to expect."""
        return {place: str(Path(place).readlink()) for place in ("/lib", "/lib64") if Path(place).is_symlink()}


@cache
def find_runtime(packages: tuple[str, ...]) -> Runtime:
    """Locate Python, these packages and our own; nothing is imported.

    Raises:
        SandboxUnavailableError: A package is missing.
    """
    return Runtime(packages=find_packages(packages))


_MIB = 1024 * 1024
_SCRATCH_BYTES = 64 * _MIB  # guess: connection files and the like; what is large is written to the output folder
_TEMPORARY_BYTES = 128 * _MIB  # guess: native libraries that archives unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One engine's part of a session.

    Attributes:
        name: Of the engine, for names of folders.
        runtime: What its program runs on.
        program: Module of ours whose ``main`` is run in the sandbox with ``limits`` for the kernel, ``memory_bytes`` of
            the session, and ``arguments``.
        launcher: What stands before the command of the program, where Python cannot be started as it is.
        arguments: Plain values for the program.
        environment: Variables beside those that every guest has.
        mounts: What it is shown beside its runtime.
        counts_rows: Whether it says of every input which rows it read (ENGINE-27).
        has_escapes: Whether a backslash in a quoted text of its SQL takes its meaning from the next character.
        scratch_bytes: Of its home folder, which lives in memory.
        temporary_bytes: Of its folder for temporary files, which lives in memory.
    """

    name: str
    runtime: Runtime
    program: str
    launcher: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    counts_rows: bool = True
    has_escapes: bool = False
    scratch_bytes: int = _SCRATCH_BYTES
    temporary_bytes: int = _TEMPORARY_BYTES


_OWN_CODE = Path("/runtime/ours")


ENTRY = "odf_engines.confined.entry"


def python_command(program: str) -> list[str]:
    """Return how a module of ours is started inside the sandbox; nothing of the machine's Python settings counts."""
    return ["/runtime/python/bin/python3", "-I", "-S", "-B", f"{_OWN_CODE / program.replace('.', '/')}.py"]


def confined_command(program: str, arguments: Mapping[str, object]) -> list[str]:
    """Return how ``main`` of a module is run inside the sandbox; ``arguments`` have ``limits`` for the kernel."""
    return [*python_command(ENTRY), program, json.dumps(arguments)]


def compile_packages(runtime: Runtime) -> None:
    """Compile what a guest can import, where that is not done yet: seconds once, then a look at each file.

    Folders that cannot be written are left as they are: their modules are compiled at every start.
    """
    for _, folder in (*runtime.packages, *runtime.ours):
        compileall.compile_dir(folder, quiet=2)
