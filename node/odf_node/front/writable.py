"""Tables that Python writes, and their versions: what stands on a table once the plug-in for it is installed.

Source: clause PYTHON-7 in ``spec/python.md``; the chapter ``spec/plug-ins/tables.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.front.table_operations import (
    Frame,
    IncrementalRows,
    TableDifference,
    TableVersion,
    WriteOptions,
    Written,
    get_operations,
)
from odf_node.records.datasets import DatasetRecord


class WritableTable(ABC):
    """The writes and versions of a table; each write is one block, or nothing.

    Every write takes the same options: ``idempotency_key`` (the same write again under it does nothing), ``if_version``
    (only where this is the newest version), and ``consumed`` (rows of ``read_incremental`` that it uses). Writes of
    a frame take ``merge_schema``: columns that only the frame has become columns of the table.

    Every write raises:
        UsageError: It is no own root, or a table as it was earlier.
        SchemaMismatchError: The frame has other columns.
        RowsRejectedError: Rows cannot be written; has the first of them.
        VersionMovedError: ``if_version`` is not the newest version.
        WritersBusyError: Other writers kept it waiting too long.
    """

    __slots__ = ()

    inner: Node
    record: DatasetRecord

    @abstractmethod
    def _require_writable(self) -> None:
        """Check that it is an own root, as it is now."""

    def insert(
        self,
        frame: Frame,
        *,
        idempotency_key: str | None = None,
        merge_schema: bool = False,
        if_version: int | None = None,
        consumed: IncrementalRows | None = None,
    ) -> Written:
        """Add rows; in a table with a key none may have the key of a current row."""
        self._require_writable()
        options = WriteOptions(idempotency_key, merge_schema, if_version, consumed)
        return get_operations().insert(self.inner, self.record, frame, options)

    def upsert(
        self,
        frame: Frame,
        *,
        keys: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        merge_schema: bool = False,
        if_version: int | None = None,
        consumed: IncrementalRows | None = None,
    ) -> Written:
        """Add rows of new keys, and correct those whose keys are there.

        Args:
            frame: The rows, each key once.
            keys: The columns of the key; None: the key of the table.
            idempotency_key: See the class, as the others.
            merge_schema: See the class.
            if_version: See the class.
            consumed: See the class.
        """
        self._require_writable()
        options = WriteOptions(idempotency_key, merge_schema, if_version, consumed)
        return get_operations().upsert(self.inner, self.record, frame, keys, options)

    def delete(self, *, where: str, idempotency_key: str | None = None, if_version: int | None = None) -> Written:
        """Retract the current rows for which a condition in SQL holds."""
        self._require_writable()
        return get_operations().delete(
            self.inner, self.record, where, WriteOptions(idempotency_key, if_version=if_version)
        )

    def overwrite(
        self,
        frame: Frame,
        *,
        where: str | None = None,
        idempotency_key: str | None = None,
        merge_schema: bool = False,
        if_version: int | None = None,
        consumed: IncrementalRows | None = None,
    ) -> Written:
        """Put rows in the place of all current rows, or of those for which a condition holds, as for all new rows."""
        self._require_writable()
        options = WriteOptions(idempotency_key, merge_schema, if_version, consumed)
        return get_operations().overwrite(self.inner, self.record, frame, where, options)

    def restore(self, version: int, *, idempotency_key: str | None = None, if_version: int | None = None) -> Written:
        """Make the rows of an earlier version current again, by a new version."""
        self._require_writable()
        return get_operations().restore(
            self.inner, self.record, version, WriteOptions(idempotency_key, if_version=if_version)
        )

    def history(self) -> list[TableVersion]:
        """List the versions, newest first."""
        return get_operations().list_versions(self.inner, self.record)

    def diff(self, since: int, until: int | None = None) -> TableDifference:
        """Compare the current rows of two versions, by the operations between them; ``until`` None: the newest."""
        return get_operations().compare(self.inner, self.record, since, until)

    def read_incremental(self, consumer: str) -> IncrementalRows:
        """Read the changes that a consumer has not read yet, from the first version on.

        Raises:
            UsageError: The name of the consumer is none.
        """
        return get_operations().read_incremental(self.inner, self.record, consumer)


def require_newest(moment: object, version: int | None, after: int) -> None:
    """Reject to write a table as it was earlier, or a part of it.

    Raises:
        UsageError: It is one.
    """
    if moment is not None or version is not None or after >= 0:
        raise UsageError("a table as it was earlier, or its changes, cannot be written; write node.table(NAME)")
