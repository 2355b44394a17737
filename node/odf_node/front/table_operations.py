"""The contract of the plug-in that gives tables of Python's front their writes, versions and changes, and its values.

Source: clauses PYTHON-7 in ``spec/python.md`` and TABLE-1 in ``spec/plug-ins/tables.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import index
from typing import TYPE_CHECKING, Final, Self, SupportsIndex

from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.plug_ins import load_plug_ins
from odf_node.records.datasets import DatasetRecord

if TYPE_CHECKING:
    import pyarrow as pa

GROUP: Final = "odf_node.tables"

Frame = object
"""Rows of pyarrow, pandas, polars, DuckDB or Spark, or a list of dictionaries."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did.

    Attributes:
        version: The version that has it, a number of a block; the newest one before, where nothing changed.
        operation: ``insert``, ``upsert``, ``delete``, ``overwrite`` or ``restore``.
        added: Rows that the table did not have.
        corrected: Rows that have other values now.
        retracted: Rows that the table has no more.
        is_repeated: Nothing was done: the same was written under this key before.
    """

    version: int
    operation: str
    added: int = 0
    corrected: int = 0
    retracted: int = 0
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """How many rows came, changed, and went."""

    added: int
    corrected: int
    retracted: int


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table: a block of its chain that has rows, or changes its columns.

    Attributes:
        version: The number of the block.
        time: Its system time.
        operation: What made it: a write of this interface, ``ingest``, ``correct``, ``step`` or ``schema``.
        rows: Of its slice.
        changed: What became of rows, as the writer states it; None where it states nothing.
        detail: The predicate of a delete or overwrite, the version that was restored, the reason of a correction.
    """

    version: int
    time: datetime
    operation: str
    rows: int = 0
    changed: ChangedRows | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TableDifference:
    """How the current rows of two versions differ.

    Attributes:
        since, until: The versions.
        key: The columns by which rows are told apart; empty: whole rows are.
        changed: How many rows came, changed and went.
        rows: ``_change_type`` (``insert``, ``delete``, ``update_preimage``, ``update_postimage``), ``_commit_version``
            (the last version between the two that added the row or took it away), then the table's columns.
    """

    since: int
    until: int
    key: tuple[str, ...]
    changed: ChangedRows
    rows: "pa.Table"


@dataclass(frozen=True, slots=True)
class IncrementalRows:
    """Changes that a consumer has not read yet: a context manager, which commits where its block ends without an error.

    Attributes:
        consumer: Its name.
        since, until: The versions behind and up to which the changes are.
        rows: As of ``changes``.
        key: Under which a write that is made of them is made once.
        commit: States that they were consumed; the next read gives what comes behind them.
    """

    consumer: str
    since: int
    until: int
    rows: "pa.Table"
    key: str
    commit: Callable[[], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What holds for any write.

    Attributes:
        key: The same write again under this key does nothing.
        merge_schema: Columns that only the frame has become columns of the table.
        if_version: Write only where this is the newest version.
        consumed: What the write is made of: it is made once, and the consumer's position moves with it.
    """

    key: str | None = None
    merge_schema: bool = False
    if_version: int | None = None
    consumed: IncrementalRows | None = None


class TableOperations(ABC):
    """What the plug-in does, of any dataset of a node; arguments and errors as the methods of ``WritableTable``."""

    @abstractmethod
    def create(
        self, node: Node, name: str, schema: object, *, key: Sequence[str] = (), event_time: str | None = None
    ) -> DatasetRecord:
        """Create a table."""

    @abstractmethod
    def insert(self, node: Node, record: DatasetRecord, frame: Frame, options: WriteOptions) -> Written:
        """Add rows."""

    @abstractmethod
    def upsert(
        self, node: Node, record: DatasetRecord, frame: Frame, keys: Sequence[str] | None, options: WriteOptions
    ) -> Written:
        """Add rows, or correct those of the same keys."""

    @abstractmethod
    def delete(self, node: Node, record: DatasetRecord, where: str, options: WriteOptions) -> Written:
        """Retract rows."""

    @abstractmethod
    def overwrite(
        self, node: Node, record: DatasetRecord, frame: Frame, where: str | None, options: WriteOptions
    ) -> Written:
        """Put rows in the place of others."""

    @abstractmethod
    def restore(self, node: Node, record: DatasetRecord, version: int, options: WriteOptions) -> Written:
        """Make the rows of an earlier version current again."""

    @abstractmethod
    def list_versions(self, node: Node, record: DatasetRecord) -> list[TableVersion]:
        """List the versions, newest first."""

    @abstractmethod
    def read_changes(self, node: Node, record: DatasetRecord, since: int, until: int | None) -> "pa.Table":
        """Read the changes between two versions."""

    @abstractmethod
    def compare(self, node: Node, record: DatasetRecord, since: int, until: int | None) -> TableDifference:
        """Compare two versions."""

    @abstractmethod
    def read_incremental(self, node: Node, record: DatasetRecord, consumer: str) -> IncrementalRows:
        """Read what a consumer has not read yet."""


def require_version(name: str, version: object, newest: int) -> int:
    """Check that a table has a version; integers of other libraries, such as those of a pandas column, are some, too.

    Args:
        name: Of the table.
        version: A number of a block.
        newest: The number of the newest block.

    Raises:
        UsageError: It is none of them.
    """
    if isinstance(version, SupportsIndex) and not isinstance(version, bool) and 0 <= index(version) <= newest:
        return index(version)
    raise UsageError(f"'{name}' has no version {version}; its versions are 0 to {newest}")


def get_operations() -> TableOperations:
    """Give the plug-in's operations.

    Raises:
        UsageError: It is not installed.
    """
    found: Mapping[str, TableOperations] = load_plug_ins(GROUP, TableOperations)
    if not found:
        raise UsageError("this installation has no plug-in that writes tables (odf_tables)")
    return next(iter(found.values()))
