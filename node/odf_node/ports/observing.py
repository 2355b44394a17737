"""Who hears what work of this node runs, how long it took and what came of it: traces and lineage are made of it.

Nothing that hears of work may slow it or make it fail, and nothing of it depends on being heard (OBSERVE-1).
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from odf_engines.stage_metrics import StageMetrics
from odf_node.records.datasets import DatasetRecord

if TYPE_CHECKING:
    import pyarrow as pa


class RunKind(StrEnum):
    """What a run does; the value is how traces call it."""

    INGEST = "ingest"
    STEP = "transform"
    REEXECUTION = "re-execute"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVersion:
    """A dataset as a run read or wrote it.

    Attributes:
        dataset_id: Its DID, text.
        name: What it is called here.
        block: Hash of its newest block then; None: none.
        columns: Names and types, where the run knows them.
    """

    dataset_id: str
    name: str
    block: str | None = None
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, kw_only=True)
class Run:
    """Work that runs: who does it says what came of it here, before it ends.

    Attributes:
        kind: What it does.
        dataset: That it is about, as it was before.
        inputs: What it reads.
        engine: Which one computes; empty: none, or nobody knows yet.
        written: The dataset with what it wrote; None: it wrote nothing.
        rows: That it added.
        bad_rows: That it set aside.
        stages: What took how long.
        milliseconds: Of a step, likewise (REPLAY-13).
        peer: The other node, ``scheme://host:port`` and no more.
        block_number: Of the step that is re-executed.
        began_s: When it began, by the monotonic clock.
    """

    kind: RunKind
    dataset: DatasetVersion
    inputs: tuple[DatasetVersion, ...] = ()
    engine: str = ""
    written: DatasetVersion | None = None
    rows: int = 0
    bad_rows: int = 0
    stages: tuple[StageMetrics, ...] = ()
    milliseconds: dict[str, int] = field(default_factory=dict)
    peer: str = ""
    block_number: int | None = None
    began_s: float = field(default_factory=time.monotonic)


def place_of(url: str) -> str:
    """Give an address with its scheme, host and port alone; empty where it is none, or a place on this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"


class Observer(Protocol):
    """Hears of runs, from any thread; nothing of what it does raises, or waits for others."""

    def observing(self, run: Run) -> AbstractContextManager[Run]:
        """Hear of a run while the block runs; how it ends is how the block ends."""
        ...

    def flush(self) -> None:
        """Wait shortly until what was heard is told, and say where it could not be."""
        ...

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How much was sent, failed and dropped so far, by what it was."""
        ...


class Unobserved:
    """Hears nothing."""

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        yield run

    def flush(self) -> None:
        """See ``Observer``."""

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        return {}


UNOBSERVED: Final[Observer] = Unobserved()


def version_of(record: DatasetRecord, columns: tuple[tuple[str, str], ...] = ()) -> DatasetVersion:
    """Give a dataset as it is with its head."""
    return DatasetVersion(dataset_id=str(record.id), name=record.name, block=str(record.head.hash), columns=columns)


def columns_of_schema(schema: "pa.Schema") -> tuple[tuple[str, str], ...]:
    """List the columns of a slice with their types, as Arrow writes these."""
    return tuple((field.name, str(field.type)) for field in schema)
