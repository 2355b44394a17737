"""The parts of the machine that DataFusion runs on: Python, and the packages that programs with it import.

Source: clauses SANDBOX-3, ENGINE-10 and FUSION-1 in ``spec/extensions``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from odf_engines.host import runtime
from odf_engines.host.digest import iter_runtime_files
from odf_engines.sandbox.profile import Mount

_PACKAGES = ("datafusion", "msgspec", "numpy", "pyarrow")

_MODULE = "typing_extensions"  # one file, which the package imports


@dataclass(frozen=True, kw_only=True)
class Runtime(runtime.Runtime):
    """Folders and files of this machine that make up the engine.

    Attributes:
        files: What the package needs beside packages, each by its place among them.
    """

    files: tuple[tuple[str, Path], ...]

    def parts(self) -> tuple[Mount, ...]:
        """See ``runtime.Runtime``."""
        return tuple(Mount(path, f"/runtime/site/{place}") for place, path in self.files)


@cache
def find_runtime() -> Runtime:
    """Locate everything; nothing is imported.

    Raises:
        SandboxUnavailableError: A package is missing.
    """
    packages = runtime.find_packages(_PACKAGES)
    # The package asks the installation for its own version when it is imported.
    named = f"datafusion-{version('datafusion')}.dist-info/METADATA"
    return Runtime(
        files=(
            (named, dict(packages)["datafusion"].parent / named),
            (f"{_MODULE}.py", runtime.find_module_file(_MODULE)),
        ),
        packages=packages,
    )


def iter_engine_files(found: Runtime, program: str, cache: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield place and path of every file that counts for the digest, in no order."""
    yield from iter_runtime_files(found, program, cache, left_out={})
    for place, path in found.files:
        yield f"python/{place}", path
