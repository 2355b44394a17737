"""Packages of this machine that several engines show in their sandboxes: what DataFusion runs on, and plug-ins.

Plug-ins, which are readers, converters and validators of others, are no part of an engine: what re-executes anything
runs none of them, and an engine's digest leaves them out.

Source: clauses SANDBOX-3, ENGINE-10 and FUSION-1 in ``spec/extensions``; VALID-3 in ``spec/validation.md``.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from zoneinfo import TZPATH

from odf_engines.errors import SandboxUnavailableError
from odf_engines.host import runtime
from odf_engines.host.digest import iter_runtime_files
from odf_engines.host.runtime import find_module_file, package_folder
from odf_engines.plug_in_names import CONVERTERS, READERS, READERS_LIBRARIES, VALIDATORS
from odf_engines.sandbox.profile import Mount
from odf_engines.strategies.registry import ADDED_STRATEGIES

_PACKAGES = ("datafusion", "msgspec", "numpy", "pyarrow")

_MODULE = "typing_extensions"  # one file, which the package imports


@dataclass(frozen=True, kw_only=True)
class PackagesRuntime(runtime.Runtime):
    """Folders and files of this machine that make up the engine.

    Attributes:
        files: What the package needs beside packages, each by its place among them.
    """

    files: tuple[tuple[str, Path], ...]

    def parts(self) -> tuple[Mount, ...]:
        """See ``runtime.Runtime``."""
        return tuple(Mount(path, f"/runtime/site/{place}") for place, path in self.files)


@cache
def find_runtime() -> PackagesRuntime:
    """Locate everything; nothing is imported.

    Raises:
        SandboxUnavailableError: A package is missing.
    """
    packages = runtime.find_packages(_PACKAGES)
    # The package asks the installation for its own version when it is imported.
    named = f"datafusion-{version('datafusion')}.dist-info/METADATA"
    return PackagesRuntime(
        files=(
            (named, dict(packages)["datafusion"].parent / named),
            (f"{_MODULE}.py", runtime.find_module_file(_MODULE)),
        ),
        packages=packages,
    )


def iter_engine_files(found: PackagesRuntime, program: str, cache: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts for the digest, in no order."""
    yield from iter_runtime_files(found, program, cache, left_out={})
    for place, path in found.files:
        yield f"python/{place}", path


_PLACE = "/runtime/plug-ins"
_ZONES = "/usr/share/zoneinfo"
_SHAPES = "shapefile"  # one file, which reads Shapefiles


def plug_in_mounts() -> tuple[Mount, ...]:
    """Return how the sandbox shows packages of others that bring plug-ins, and those that our own need.

    Those that are gone are left out.
    """
    mounts = []
    brought = (READERS, CONVERTERS, VALIDATORS, ADDED_STRATEGIES)
    for name in sorted({*READERS_LIBRARIES, *(name for kind in brought for name in kind.packages())}):
        try:
            mounts.append(Mount(package_folder(name), f"{_PLACE}/{name}"))
        except SandboxUnavailableError:
            continue  # a declaration that names it is answered where it is read
    with suppress(SandboxUnavailableError):
        found = find_runtime()
        shown = (*found.files, ("datafusion", dict(found.packages)["datafusion"]))
        mounts += [Mount(path, f"{_PLACE}/{place}") for place, path in shown]
    return (*mounts, *shapefile_mounts(_PLACE), *_zone_mounts())


def _zone_mounts() -> tuple[Mount, ...]:
    """Return how the sandbox shows time zones: those of this machine, else of the package ``tzdata`` where it is."""
    for folder in map(Path, TZPATH):
        if (folder / "UTC").is_file():
            return (Mount(folder, _ZONES),)
    with suppress(SandboxUnavailableError):
        return (Mount(package_folder("tzdata"), f"{_PLACE}/tzdata"),)
    return ()


def shapefile_mounts(folder: str) -> tuple[Mount, ...]:
    """Return how the sandbox shows what reads Shapefiles, in this folder; nothing where it is not installed."""
    try:
        return (Mount(find_module_file(_SHAPES), f"{folder}/{_SHAPES}.py"),)
    except SandboxUnavailableError:
        return ()
