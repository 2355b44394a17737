"""The program inside the sandbox: starts Java, and leaves the rest to ``answering``, which is loaded while Java starts.

Source: clauses ENGINE-3 to ENGINE-6 in ``spec/extensions/engine-contract.md``.
"""

from typing import Any

from odf_engines.host.worker import output_folder
from odf_spark.answering import serve
from odf_spark.launch import start_java


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``memory_bytes`` of the session, ``cores`` and ``java_options``; for a cluster ``settings`` of Spark
            besides, its ``master`` and how many ``executors`` it is to give.
    """
    settings = arguments.get("settings", {})
    if settings:
        settings = {**settings, "spark.local.dir": f"{output_folder()}/.spark"}
    java = start_java(
        # The other half is for Java outside its heap, Python and Arrow.
        heap_bytes=arguments["memory_bytes"] // 2,
        cores=arguments["cores"],
        options=arguments["java_options"],
        settings=settings,
    )
    serve(java, arguments)
