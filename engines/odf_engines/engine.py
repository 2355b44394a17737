"""Three small contracts: an engine runs transforms, ingests, answers questions, or does several of these.

An engine says which it offers, and its sessions answer that; what they are asked and answer is in ``contract``. The
registry says who offers what, and which engine is asked for what is the node's setting.

Source: clauses ENGINE-1, ENGINE-14 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from odf_engines.cluster import Cluster
from odf_engines.contract import (
    Grade,
    IngestRequest,
    IngestResponse,
    Limits,
    PreparedRows,
    QueryRequest,
    QueryResponse,
    QueryTable,
    TransformRequest,
    TransformResponse,
)
from odf_protocol.events import AddPushSource, MergeStrategy, SetPollingSource, TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_protocol.manifest.errors import At

__all__ = [
    "CallerConfinedEngine",
    "Capability",
    "ClusterEngine",
    "Engine",
    "EngineSession",
    "IngestEngine",
    "IngestSession",
    "MachineNeed",
    "PreprocessSession",
    "QuerySession",
    "ReportsProgress",
    "Session",
    "TransformSession",
]


class Session(Protocol):
    """One sandboxed process, warm after the first request; requests block and are answered one at a time.

    Files in responses live in the workspace until ``close``; the caller moves what it keeps. After
    ``LimitExceededError`` or ``EngineFailureError`` the process is gone and the next request starts a new one.
    """

    def start(self) -> None:
        """Start the process now instead of with the first request; nothing if it runs.

        Raises:
            SandboxUnavailableError, EngineFailureError, LimitExceededError
        """
        ...

    def stop(self) -> None:
        """End the process at once, from any thread: requests that run or come later raise EngineFailureError."""
        ...

    def close(self) -> None:
        """End the process and delete the workspace; safe to repeat."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...


class TransformSession(Session, Protocol):
    """A session of an engine that offers ``Capability.TRANSFORM``."""

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run one step.

        Raises:
            InvalidQueryError, NotReproducibleError, LimitExceededError, EngineFailureError
        """
        ...

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        """Grade a transform over inputs of these schemas; a rejection is a grade, not an error.

        Args:
            transform: The query to be published.
            inputs: Names and schemas; slices are not looked at.
            vocabulary: Of the output, the usual names if None.
        """
        ...


class IngestSession(Session, Protocol):
    """A session of an engine that offers ``Capability.INGEST``."""

    def ingest(self, request: IngestRequest) -> IngestResponse:
        """Read, convert, preprocess and merge one source file.

        Raises:
            InvalidSourceError, InvalidQueryError, LimitExceededError, EngineFailureError
        """
        ...

    def convert(self, request: IngestRequest) -> PreparedRows:
        """Read and convert one source file, for a query that another engine runs.

        Raises:
            InvalidSourceError, LimitExceededError, EngineFailureError
        """
        ...


class PreprocessSession(Session, Protocol):
    """A session of an engine that offers ``Capability.PREPROCESS``."""

    def preprocess(self, transform: TransformSql, rows: Path) -> QueryResponse:
        """Run the queries of a preprocess step over converted rows, table ``input``, and return what they give.

        Raises:
            InvalidQueryError, LimitExceededError, EngineFailureError
        """
        ...


class QuerySession(Session, Protocol):
    """A session of an engine that offers ``Capability.QUERY``."""

    def query(self, request: QueryRequest) -> QueryResponse:
        """Answer a question.

        Raises:
            InvalidQueryError, LimitExceededError, EngineFailureError
        """
        ...


class EngineSession(TransformSession, IngestSession, PreprocessSession, QuerySession, Protocol):
    """A session; what its engine does not offer is not asked of it."""


@runtime_checkable
class ReportsProgress(Protocol):
    """A session that may tell, while it works, what its engine says of its progress (ENGINE-29, ADDED-7)."""

    on_progress: Callable[[int], None]


class Capability(StrEnum):
    """What an engine can be asked for (ENGINE-24)."""

    TRANSFORM = "transform"
    INGEST = "ingest"
    PREPROCESS = "preprocess"  # for the engine that ingests
    QUERY = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNeed:
    """Something that an engine needs of a machine and that was tried: what, what was found, how to fix a lack."""

    what: str
    is_there: bool
    found: str
    fix: str


class Engine(Protocol):
    """A runtime; making one costs nothing, opening a session starts a process."""

    @property
    def name(self) -> str:
        """As ``TransformSql.engine`` spells it."""
        ...

    @property
    def version(self) -> str:
        """For people; ``digest`` is what identifies it."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its sessions answer."""
        ...

    @property
    def is_stepwise(self) -> bool:
        """Whether a step of a derivative is over what is new in its inputs alone, whatever the query (FUSION-10)."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings that can change a result, as step records state them."""
        ...

    def digest(self) -> Multihash:
        """Hash every file that can change a result, independent of where it is installed (ENGINE-10)."""
        ...

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        """Prepare a session.

        Args:
            workspace: Existing folder of the caller's, on the file system of its objects if links shall be possible.
            limits: For the whole session.

        Raises:
            SandboxUnavailableError: Isolation does not work here.
        """
        ...

    def prepare(self) -> None:
        """Make, once per machine, what lets the engine start faster; never changes a result, safe to repeat.

        Raises:
            SandboxUnavailableError, EngineError: It cannot be made; the engine starts without it, only slower.
        """
        ...

    def examine(self) -> Sequence[MachineNeed]:
        """Try what the engine needs of this machine beside the sandbox; starts no session."""
        ...


@runtime_checkable
class ClusterEngine(Engine, Protocol):
    """An engine whose sessions may let a cluster work for them."""

    def check_master(self, master: str) -> None:
        """Check the address of a cluster, as settings state it.

        Raises:
            ValueError: It is none; says what was expected.
        """
        ...

    def open_on_cluster(self, cluster: Cluster, workspace: Path, limits: Limits) -> EngineSession:
        """Prepare a session for steps of own datasets, whose results are those of any other session (CLUSTER-2).

        Args:
            cluster: What the operator's settings say of it.
            workspace: Existing folder of the caller's inside the one that the cluster shares.
            limits: Of the process on this machine.

        Raises:
            ClusterUnavailableError: It cannot be reached, or this machine is not ready for it.
            SandboxUnavailableError: Isolation does not work here.
        """
        ...


@runtime_checkable
class CallerConfinedEngine(Engine, Protocol):
    """An engine that can do without a sandbox of its own where its caller is confined as a whole (GRPC-11)."""

    def confined_by_caller(self) -> Engine:
        """Return the engine whose sessions make no sandbox: the container of the whole program is the sandbox.

        Never for untrusted queries on a machine that holds anything of value.
        """
        ...


class IngestEngine(Engine, Protocol):
    """An engine that offers ``Capability.INGEST``: it also knows the state that its ingests leave behind."""

    def fits_state(self, path: Path, merge: MergeStrategy, next_offset: int, columns: "Sequence[pa.Field]") -> bool:
        """Say whether a state file is the one that ``merge`` needs for the row of offset ``next_offset``.

        ``columns`` are those of the dataset as its schema is now, without system columns.
        """
        ...

    def check_source(
        self,
        source: SetPollingSource | AddPushSource,
        vocabulary: Vocabulary,
        at: "At",
        *,
        has_converters: bool = False,
    ) -> None:
        """Look for what would make every ingest of a source fail, before there is a file (ING-18).

        Args:
            source: As a manifest declares it; a schema in it can be read.
            vocabulary: Names of the dataset's system columns.
            at: Where the source stands in its manifest.
            has_converters: The columns that are read are not those that are merged.

        Raises:
            SnapshotError: What is wrong first, with its place.
        """
        ...

    def rebuild_state(self, slices: Sequence[Path], merge: MergeStrategy, vocabulary: Vocabulary, target: Path) -> None:
        """Make the state file from all slices of a dataset, oldest first.

        Raises:
            EngineFailureError: There are no slices.
        """
        ...
