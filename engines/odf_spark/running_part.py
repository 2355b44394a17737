"""Which part of a step is at work, told to the host by a file: whoever ends a step at a limit can say where it was.

Spark's tasks run in threads of Java, whose stacks say at any time what they do: Spark names what it generates after
its operators. A look at them takes some milliseconds, so there is none in the first half second of a step, and then
one every two seconds. What is done here, reading and writing by Arrow, is told when it begins.

Source: clause ENGINE-16 in ``spec/extensions/engine-contract.md``.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError

from odf_engines.errors import LimitExceededError
from odf_engines.host.step_parts import reported_part
from odf_engines.validation.running_name import RunningName
from odf_spark.java_side import java_class
from odf_spark.steps import ParsedStep

_Chunk = TypeVar("_Chunk")

_FIRST_S: Final = 0.5  # guess: most steps end before
_EACH_S: Final = 2.0  # guess: a look at sixty threads takes 30 ms, of a step that takes seconds
_FRAME: Final = re.compile(r"^\s+at (\S+)\(", re.MULTILINE)
_TASK: Final = "Executor task launch worker"
# What of Spark 4.3 is named so: packages of its operators, and methods that it generates for them.
_WORKING: Final = {
    "join": re.compile(r"execution\.joins\.|\.(?:smj|bhj|shj|bnlj)_"),
    "aggregate": re.compile(r"execution\.aggregate\.|UnsafeFixedWidthAggregationMap|\.(?:hashAgg|agg|sortAgg)_"),
    "window": re.compile(r"execution\.window\."),
    "sort": re.compile(r"UnsafeExternalRowSorter|execution\.(?:SortExec|TakeOrdered)|\.sort_"),
}
# Where no operator of these is at work: the first that is found. What a thread has called last of what was generated
# computes columns or filters.
_OTHER: Final = {
    "scan": re.compile(r"datasources\.(?:parquet\.Vectorized|FileScanRDD|RecordReader)|FileSourceScan|\.columnartorow"),
    "compute": re.compile(r"GeneratedIteratorForCodegenStage"),
    "write": re.compile(r"datasources\.FileFormat|OutputWriter|execution\.arrow\."),
    "exchange": re.compile(r"org\.apache\.spark\.shuffle\.|execution\.exchange\."),
}
_DRIVER: Final = "Driver stacktrace"


def find_part(trace: str) -> str | None:
    """Say what a thread of Java is doing, by its stack as Java prints it, which begins with what was called last."""
    frames = _FRAME.findall(trace)
    for frame in frames:
        for part, names in _WORKING.items():
            if names.search(frame):
                return part
    return next((part for part, names in _OTHER.items() if any(map(names.search, frames))), None)


@dataclass(slots=True)
class RunningPart:
    """Tells which part of a step is at work.

    Attributes:
        reported: To the host.
        queries: Numbers of those that have a part, for some parts.
    """

    reported: RunningName
    queries: Mapping[str, Sequence[int]]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, part: str) -> None:
        """Say that a part is at work; from any thread."""
        with self._lock:
            self.reported.tell(reported_part(part, self.queries.get(part, ())))

    def writing(self, chunks: Iterable[_Chunk]) -> Iterator[_Chunk]:
        """Say of each piece that it is written when it is given away; more rows than are allowed would be, too."""
        try:
            for chunk in chunks:
                self.tell("write")
                yield chunk
        except LimitExceededError as error:
            if error.limit == "output_rows":
                self.tell("write")
            raise


@contextmanager
def running_part(folder: Path, steps: Sequence[ParsedStep]) -> Iterator[RunningPart]:
    """Tell while the block runs which part of a step is at work; what was told last stays.

    Args:
        folder: Of the request's output.
        steps: Queries of the transform, none where only one is worth naming.
    """
    named = {each for step in steps for each in step.parts} if len(steps) > 1 else ()
    queries = {each: [number for number, step in enumerate(steps) if each in step.parts] for each in named}
    part = RunningPart(RunningName(folder), queries)
    part.tell("scan")
    ended = threading.Event()
    looking = threading.Thread(target=_look, args=(part, ended), name="running part", daemon=True)
    looking.start()
    try:
        yield part
    except Py4JError as error:
        # A task that failed for want of memory brings its own stack.
        if (found := find_part(str(error).partition(_DRIVER)[0])) is not None:
            part.tell(found)
        raise
    finally:
        ended.set()
        looking.join()


def _look(part: RunningPart, ended: threading.Event) -> None:
    pause_s = _FIRST_S
    while not ended.wait(pause_s):
        pause_s = _EACH_S
        try:
            found = Counter(each for each in map(find_part, _iter_traces()) if each is not None)
        except Exception:  # noqa: BLE001 - Java has ended, which is told by whoever waits for it
            return
        if found and not ended.is_set():
            part.tell(found.most_common(1)[0][0])


def _iter_traces() -> Iterator[str]:
    """Yield the stacks of Spark's tasks that run in this Java; those of a cluster run elsewhere."""
    traces: Any = java_class("java.lang.Thread").getAllStackTraces()
    if _TASK not in str(traces.keySet().toString()):
        return  # a question about each of sixty threads is dear while a step is planned
    for thread in traces:
        if thread.getName().startswith(_TASK):
            # A stack is printed by what can have one.
            printed, carrier = java_class("java.io.StringWriter")(), java_class("java.lang.Throwable")()
            carrier.setStackTrace(traces[thread])
            carrier.printStackTrace(java_class("java.io.PrintWriter")(printed))
            yield str(printed.toString())
