"""Spark as a guest of the host: which program, with which Java options and environment.

Source: clauses ENGINE-9, ENGINE-13 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Sequence
from pathlib import Path

from odf_engines.host.guest import Guest
from odf_engines.host.plug_in_mounts import plug_in_mounts
from odf_engines.sandbox.profile import Mount
from odf_engines.spark.runtime import Runtime

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
