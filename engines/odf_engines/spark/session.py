"""A session of Spark, which takes a step over millions of rows to a Java that compiles all it can.

Java's second compiler costs more than a small step takes, and halves the time of a large one (``launch.SHORT_LIVED``).
A process has it from its start or not at all, so the process ends before the first large step, and another one starts.
It stays for what comes after.

Source: clause ENGINE-30 in ``spec/extensions/engine-contract.md``.
"""

from dataclasses import replace
from typing import Final

from odf_engines.contract import TransformRequest, TransformResponse
from odf_engines.host.session import HostSession
from odf_engines.spark.launch import SHORT_LIVED

LARGE_STEP_ROWS: Final = 5_000_000  # measured: a first step takes as long with either compiler, a second one half


class SparkHostSession(HostSession):
    """See ``HostSession``."""

    def transform(self, request: TransformRequest) -> TransformResponse:
        """See ``EngineSession``."""
        if _new_rows(request) >= LARGE_STEP_ROWS:
            self.compile_fully()
        return super().transform(request)

    def compile_fully(self) -> None:
        """Use both of Java's compilers from the next request on; one that has them goes on as it is."""
        options = self.guest.arguments["java_options"]
        assert isinstance(options, list)
        if any(each in options for each in SHORT_LIVED):
            kept = [each for each in options if each not in SHORT_LIVED]
            self.end_process()
            self.guest = replace(self.guest, arguments={**self.guest.arguments, "java_options": kept})


def _new_rows(request: TransformRequest) -> int:
    # Offsets of blocks that were verified, and whose rows are here.
    intervals = (each.offset_interval for each in request.inputs if each.offset_interval is not None)
    return sum(each.end - each.start + 1 for each in intervals)
