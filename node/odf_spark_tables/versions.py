"""The files that Spark reads: those of a dataset's rows that this node has verified, in a folder for each version.

Spark lists a folder when a query is analysed. ``current`` is a link to the folder of one version, which is replaced in
one step, so that a query sees a version as a whole.

Source: clauses SPARKTABLE-3 to SPARKTABLE-6 in ``spec/plug-ins/spark-tables.md``.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_node.composition import Node
from odf_node.datasets.chains import iter_slices, load_view, with_head_of
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.front.tables import bring_files
from odf_node.home_folder import name_sinks
from odf_node.ports.access import AccessLog
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema, DataSlice
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.timestamp import Timestamp
from odf_spark_tables.columns import columns_before_rows, data_columns, data_schema
from odf_spark_tables.current_rows import CurrentRowsFiles
from odf_spark_tables.folders import alone

CURRENT: Final = "current"
ROWS: Final = "rows"
CHANGES: Final = "changes"

TABLE: Final = "table"
"""Queries of the session may read the files from now on; of none of them Spark says so."""
READ: Final = "rows"
"""They are read."""
COLUMNS: Final = ""
"""Their columns are looked at, and no row."""

MAX_SLICES: Final = 64
"""Slices that are read one by one; behind as many, they become one file.  # guess: opening each costs milliseconds"""

_KEPT_VERSIONS: Final = 8  # guess: queries that were analysed before end within as many writes
_COLUMNS_FILE: Final = "columns.parquet"
_TAKING: Final = (1, 2)  # Source: ODF OperationType, retract and correct-from
_DIGITS: Final = 16  # of a hash that nobody gains by finding again: it tells versions of one dataset apart


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A version of a dataset as files.

    Attributes:
        rows: The folder with the current rows.
        changes: The folder with every row of the changelog.
        schema: Columns of the changelog.
        rows_schema: Columns of the current rows.
    """

    rows: Path
    changes: Path
    schema: DataSchema
    rows_schema: DataSchema

    def in_version(self) -> "PublishedTable":
        """Give the same with folders that stay what they are when a later version takes their place."""
        place = self.changes.parent.resolve()
        return replace(self, rows=place / ROWS, changes=place / CHANGES)


@dataclass(frozen=True, slots=True)
class Versions:
    """Gives the files of datasets of one node.

    Attributes:
        node: The node.
        folder: That of the session.
        access: Hears that versions are read: of the home, also where the node is that of a dataset at an address.
    """

    node: Node
    folder: Path
    access: AccessLog

    def publish(self, record: DatasetRecord, *, as_of: Timestamp | None = None, what: str = TABLE) -> PublishedTable:
        """Verify what is new of a dataset, and make it what Spark reads from now on.

        Args:
            record: The dataset.
            as_of: Give what was known by then, in folders of their own.
            what: ``TABLE``, ``READ`` or ``COLUMNS``: what they are wanted for (AUDIT-1).

        Raises:
            UnsupportedError: It has no columns yet, or one that Spark cannot hold.
            ObjectsAbsentError: Files of the dataset are not here by choice, and can be had nowhere now.
            RejectedError, ObjectCorruptError: Rows of a file are not what its block says.
            HomeFullError, HomeReadOnlyError: There is no room for rows that have to be written anew.
        """
        store = self.node.store
        view = load_view(store, record.id)
        schema = view.schema or columns_before_rows(view)
        if schema is None:
            raise UnsupportedError(f"'{record.name}' has no columns yet: its first rows say what they are")
        slices = tuple(iter_slices(store, record.id, as_of=as_of, upto=view.sequence_number))
        moment = "" if as_of is None else f"-{_digest(str(as_of).encode())}"
        place = self.folder / f"{name_sinks(record.id)}{moment}"
        with alone(place):
            columns = rows_schema_of(schema)
            label = _digest(columns.serialize().to_pybytes(), *(str(each.physical_hash).encode() for each in slices))
            current = place / CURRENT
            if not (current / label).exists():
                self._make(place, record, view, columns, slices, label)
            if what != COLUMNS:
                self.access.note_read(with_head_of(record, view), as_of=as_of, what=what)
            return PublishedTable(current / ROWS, current / CHANGES, schema, data_schema(schema, view))

    def _make(
        self,
        place: Path,
        record: DatasetRecord,
        view: DatasetView,
        columns: pa.Schema,
        slices: Sequence[DataSlice],
        label: str,
    ) -> None:
        numbers = sorted(int(each.name) for each in place.iterdir() if each.name.isdigit())
        version = place / str(numbers[-1] + 1 if numbers else 0)
        made = place / f"making-{secrets.token_hex(4)}"
        try:
            (made / CHANGES).mkdir(parents=True)
            files = self._link(made / CHANGES, place / CURRENT / CHANGES, record, view, columns, slices)
            _write_columns(made / CHANGES, columns)
            self._put_rows(made, record, view, columns, slices, files)
            (made / label).touch()
            made.rename(version)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        link = place / f"link-{secrets.token_hex(4)}"
        link.symlink_to(version.name)
        link.rename(place / CURRENT)
        for number in numbers[:-_KEPT_VERSIONS]:
            shutil.rmtree(place / str(number), ignore_errors=True)

    def _link(
        self,
        target: Path,
        before: Path,
        record: DatasetRecord,
        view: DatasetView,
        columns: pa.Schema,
        slices: Sequence[DataSlice],
    ) -> "list[_SliceFile]":
        """Link the files of all slices; those of the version before were verified when they became part of it."""
        form = _digest(columns.serialize().to_pybytes())
        held: dict[str, Path] = {}
        if before.is_dir():
            held = {each.name.rpartition(".")[0].rpartition(".")[0]: each for each in before.iterdir()}
        new = [each for each in slices if f"{each.physical_hash}-{form}" not in held]
        verified = dict(zip((each.physical_hash for each in new), self._verify(record, view, new), strict=True))
        found = []
        for place, each in enumerate(slices):
            name = f"{each.physical_hash}-{form}"
            path = held.get(name)
            if path is None:
                path = verified[each.physical_hash]
                takes = _takes(path, view.vocabulary.op)
                link = target / f"{name}.{'takes' if takes else 'gives'}.parquet"
            else:
                takes, link = path.name.endswith(".takes.parquet"), target / path.name
            if not link.exists():  # two blocks may name one file
                _put(path, link)
            found.append(_SliceFile(link, place, takes))
        return found

    def _verify(self, record: DatasetRecord, view: DatasetView, slices: Sequence[DataSlice]) -> Sequence[Path]:
        """Give files that this node wrote itself, from rows that it checked (ENGINE-26), each read and undamaged."""
        node, needed = self.node, {each.physical_hash for each in slices}
        if not needed:
            return ()
        bring_files(node, [(record, needed)])
        Presence(node.store, node.objects).require_checked(record, needed)
        return EngineRows(node.store, node.objects, node.objects.rows).get_paths(record.id, slices, view.schema)

    def _put_rows(
        self,
        made: Path,
        record: DatasetRecord,
        view: DatasetView,
        columns: pa.Schema,
        slices: Sequence[DataSlice],
        files: "Sequence[_SliceFile]",
    ) -> None:
        """Make the folder of the current rows: the slices themselves where nothing was taken back and they are few."""
        together = len(slices) // MAX_SLICES * MAX_SLICES
        for each in files:
            if each.takes:
                together = max(together, each.place + 1)
        if not together:
            (made / ROWS).symlink_to(CHANGES)
            return
        (made / ROWS).mkdir()
        first = CurrentRowsFiles(self.node).get(
            record, view, slices[:together], [each.path for each in files[:together]], data_columns(columns, view)
        )
        _put(first, made / ROWS / f"{first.stem}.parquet")
        for each in files[together:]:
            _put(each.path, made / ROWS / each.path.name)
        _write_columns(made / ROWS, data_columns(columns, view))


@dataclass(frozen=True, slots=True)
class _SliceFile:
    path: Path
    place: int
    takes: bool


def _takes(path: Path, op: str) -> bool:
    """Say whether a row of a file takes another one back."""
    with pq.ParquetFile(path) as file:
        return any(
            pc.any(pc.is_in(batch.column(0), pa.array(_TAKING, batch.column(0).type))).as_py()
            for batch in file.iter_batches(columns=[op])
        )


def _put(path: Path, link: Path) -> None:
    """Give a file a further name, under which it stays when the cache of rows is trimmed."""
    try:
        os.link(path, link)
    except FileExistsError:
        return
    except OSError:
        # Another file system, or one without links.
        draft = link.with_suffix(".draft")
        shutil.copyfile(path, draft)
        draft.rename(link)


def _write_columns(folder: Path, columns: pa.Schema) -> None:
    """Write a file without rows, so that Spark finds columns where there are no rows."""
    pq.write_table(columns.empty_table(), folder / _COLUMNS_FILE)


def _digest(*parts: bytes) -> str:
    found = hashlib.sha3_256()
    for each in parts:
        found.update(each)
    return found.hexdigest()[:_DIGITS]
