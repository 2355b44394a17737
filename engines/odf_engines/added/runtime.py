"""What the sandbox of an added engine contains: the engine, and Python with our packages for the program beside it.

An engine that comes with a root folder runs on its own libraries, at their usual places. Those of this machine, which
Python needs, then stand elsewhere, and Python is started by this machine's own loader, which is told where they are.

Source: clauses ADDED-6 and SANDBOX-3 in ``spec/extensions``.
"""

import importlib.util
import struct
from dataclasses import dataclass
from pathlib import Path

from odf_engines.added.places import OWN_PLACES, PROGRAM
from odf_engines.errors import SandboxUnavailableError
from odf_engines.host import runtime
from odf_engines.sandbox.profile import Mount
from odf_engines.sandbox.root_folder import show_root

_PACKAGES = ("flatbuffers", "grpc", "msgspec", "numpy", "pyarrow")
_MODULE = "typing_extensions"  # one file, which grpc imports
_SYSTEM = "/runtime/system"
_PT_INTERP = 3  # elf(5): the segment that names the loader


@dataclass(frozen=True, kw_only=True)
class ProgramRuntime(runtime.Runtime):
    """The engine is one file, and runs on the libraries of this machine.

    Attributes:
        program: The file.
    """

    program: Path

    def parts(self) -> tuple[Mount, ...]:
        return (Mount(self.program, PROGRAM), _module_mount())


@dataclass(frozen=True, kw_only=True)
class RootRuntime(runtime.Runtime):
    """The engine has a root folder of its own.

    Attributes:
        root: It.
    """

    root: Path

    def mounts(self) -> tuple[Mount, ...]:
        shown = [*show_root(self.root, OWN_PLACES)[0]]
        for each in (*super().mounts(), _module_mount()):
            if each.target.startswith("/usr/"):
                shown.append(Mount(each.source, f"{_SYSTEM}/{each.target.removeprefix('/usr/')}"))
            elif not each.target.startswith("/etc/"):
                shown.append(each)
        return tuple(shown)

    def links(self) -> dict[str, str]:
        return show_root(self.root, OWN_PLACES)[1]

    def launcher(self) -> tuple[str, ...]:
        """Return what stands before the command of our program: this machine's loader, at its place.

        Raises:
            SandboxUnavailableError: This Python has none, or one outside of the folders of libraries.
        """
        loader = _loader_of(self.python)
        try:
            place = f"{_SYSTEM}/{loader.relative_to('/usr')}"
        except ValueError as error:
            raise SandboxUnavailableError(f"the loader {loader} is not below /usr") from error
        # Its own first: this machine may have another Python of this version.
        folders = ("/runtime/python/lib", str(Path(place).parent), f"{_SYSTEM}/lib", f"{_SYSTEM}/lib64")
        return (place, "--inhibit-cache", "--library-path", ":".join(folders))


def find_runtime(files: Path) -> ProgramRuntime | RootRuntime:
    """Locate everything; nothing is imported.

    Args:
        files: The program, or the root folder.

    Raises:
        SandboxUnavailableError: A package is missing.
    """
    try:
        parts = {
            "python": runtime.find_python(),
            "python_library": runtime.find_python_library(),
            "packages": runtime.find_packages(_PACKAGES),
            "ours": runtime.find_own_packages(),
        }
    except SandboxUnavailableError as error:
        raise SandboxUnavailableError(
            f"{error.reason}; added engines need the extra grpc: pip install 'odf-node[grpc]'"
        ) from error
    return RootRuntime(root=files, **parts) if files.is_dir() else ProgramRuntime(program=files, **parts)  # type: ignore[arg-type]  # as named


def _module_mount() -> Mount:
    module = importlib.util.find_spec(_MODULE)
    if module is None or module.origin is None:
        raise SandboxUnavailableError(f"the package {_MODULE} is not installed")
    return Mount(Path(module.origin).resolve(), f"/runtime/site/{_MODULE}.py")


def _loader_of(program: Path) -> Path:
    """Read which loader a program of 64 bits asks for, and follow its links (elf(5))."""
    raw = program.read_bytes()
    table, size, count = *struct.unpack_from("<Q", raw, 32), *struct.unpack_from("<HH", raw, 54)
    for number in range(count):
        kind, _flags, position, _address, _physical, length = struct.unpack_from("<IIQQQQ", raw, table + number * size)
        if kind == _PT_INTERP:
            return Path(raw[position : position + length].rstrip(b"\0").decode()).resolve()
    raise SandboxUnavailableError(f"{program} names no loader, so it cannot run beside another root folder")
