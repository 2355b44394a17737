"""Relations that writes and comparisons ask DataFusion about: current rows of versions, rows between two, and frames.

Names of columns are quoted; a condition is the caller's own, and passes the engine's checks as any query does.

Source: clauses QUERY-1 to QUERY-3 in ``spec/query.md``.
"""

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryTable
from odf_engines.host.query_tokens import TokenKind, iter_tokens
from odf_node.composition import Node
from odf_node.datasets.chains import iter_slices, load_view, with_newest_head
from odf_node.datasets.changelogs import data_of
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.errors import UsageError
from odf_node.front.table_operations import require_version
from odf_node.front.tables import bring_files
from odf_node.records.datasets import DatasetRecord
from odf_protocol.block import decode_block
from odf_protocol.comparison_form import form_sql, has_floats
from odf_protocol.dataset_view import DatasetView
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

NOW, THEN, FRAME, EVENTS = "odf_now", "odf_then", "odf_frame", "odf_events"
"""Names of tables in queries; those of datasets are not known there."""
_ENGINE: Final = "datafusion"


def quote(name: str) -> str:
    """Quote a name for DataFusion's SQL."""
    return '"' + name.replace('"', '""') + '"'


def free_name(word: str, columns: Collection[str]) -> str:
    """Give a column of a query a name that no column of a table has."""
    while word in columns:
        word += "_"
    return word


def quote_forms(fields: Sequence[pa.Field], side: str = "") -> list[str]:
    """Write the columns of a relation in the form in which rows are compared (QUERY-3), without names.

    Args:
        fields: As ``list_fields`` gives them.
        side: What stands before the name of a column, as ``s.``.
    """
    return [form_sql(f"{side}{quote(each.name)}", each.type) for each in fields]


def select_forms(fields: Sequence[pa.Field]) -> str:
    """Write the columns of a relation in the form in which rows are compared, under their names."""
    return ", ".join(f"{form} AS {quote(each.name)}" for form, each in zip(quote_forms(fields), fields, strict=True))


def rows_where(relation: str, fields: Sequence[pa.Field], where: str, shown: str = "") -> str:
    """Write the query for the rows of a relation for which a condition holds, as they are.

    The condition sees numbers in the form in which rows are compared: ``k = 0`` holds for -0.0, and ``k < 0`` does not.

    Args:
        relation: Its name.
        fields: Its columns.
        where: What follows the word ``WHERE``.
        shown: What stands before the columns of the result.
    """
    kept = dict[str, str]()
    for each in fields:
        if has_floats(each.type):
            kept[each.name] = free_name(f"odf_{each.name}", [*(field.name for field in fields), *kept.values()])
    columns = ", ".join(f"{quote(kept.get(each.name, each.name))} AS {quote(each.name)}" for each in fields)
    plain = ", ".join(f"{quote(name)} AS {quote(free)}" for name, free in kept.items())
    compared = f"SELECT {select_forms(fields)}{plain and ', '}{plain} FROM {relation}"  # noqa: S608 - quoted, as below
    return f"SELECT {shown}{columns} FROM ({compared}) AS {relation} WHERE {where}"  # noqa: S608 - the caller's own


def check_condition(where: str) -> None:
    """Check that a condition is one expression: the brackets that a write puts around it stay a pair.

    Raises:
        UsageError: It is no text, or ends a bracket that it does not open.
        InvalidQueryError: A quote or comment of it does not end.
    """
    if not isinstance(where, str):
        raise UsageError(f"a condition is a text in SQL, found {where!r}; where='true' holds for every row")
    depth = 0
    for token in iter_tokens(where, _ENGINE):
        if token.kind is TokenKind.SIGN:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth < 0:
                raise UsageError(f"the condition ends a bracket at character {token.start} that it does not open")


@dataclass(frozen=True, slots=True)
class Relations:
    """Of one dataset; with ``brings``, files that are not here by choice are brought first (PART-9)."""

    node: Node
    record: DatasetRecord
    brings: bool = True

    def current(self, name: str, *, version: int | None = None) -> QueryTable:
        """Give the changelog up to a version as a table; ``NAME__state`` has its current rows."""
        self._bring(version)
        return self.node.queries.make_table(self.record, None, name, version=version)

    def between(self, since: int, until: int) -> QueryTable:
        """Give the operations behind one version, up to another one."""
        self._bring(until)
        return self.node.queries.make_table(self.record, None, EVENTS, version=until, after_version=since)

    def list_files(self, since: int, until: int) -> list[tuple[int, Path]]:
        """List the files with the operations behind one version, up to another one, by their versions.

        Raises:
            ObjectsAbsentError: Files are not here, or their rows were not checked.
        """
        self._bring(until)
        store, objects, view = self.node.store, self.node.objects, self.view()
        found = [
            (stored.sequence_number, data_of(decode_block(stored.raw, expected_hash=stored.hash)))
            for stored in store.iter_blocks_with_rows(self.record.id)
            if since < stored.sequence_number <= until
        ]
        slices = [data for _, data in found]
        Presence(store, objects).require_checked(self.record, [each.physical_hash for each in slices])
        paths = EngineRows(store, objects, objects.rows).get_paths(self.record.id, slices, view.schema)
        if found:
            store.access.note_read(with_newest_head(store, self.record), version=until)
        return [(version, path) for (version, _), path in zip(found, paths, strict=True)]

    def ask(self, sql: str, tables: Sequence[QueryTable], *, max_rows: int | None = None) -> pa.Table:
        """Answer a query over these tables alone."""
        return self.node.queries.run(sql, as_of=None, max_rows=max_rows, records=(), more=tuple(tables)).rows

    def ask_into(self, sql: str, tables: Sequence[QueryTable], target: Path) -> None:
        """Write the answer to a query as Arrow's stream."""
        found = self.node.queries.ask(sql, as_of=None, max_rows=None, records=(), more=tuple(tables))
        found.path.replace(target)

    def require_version(self, version: int) -> int:
        """Check that there is a version.

        Raises:
            UsageError: There is not.
        """
        return require_version(self.record.name, version, self.get_newest())

    def get_newest(self) -> int:
        """Give the number of the newest version."""
        current = self.node.store.find_dataset(self.record.id)
        return (self.record if current is None else current).head.sequence_number

    def find_hash(self, version: int) -> Multihash | None:
        """Find the hash of the block of a version."""
        stored = self.node.store.find_block_by_number(self.record.id, version)
        return None if stored is None else stored.hash

    def view(self, version: int | None = None) -> DatasetView:
        """Say what is in force at a version."""
        return load_view(self.node.store, self.record.id, upto=version)

    def _bring(self, version: int | None) -> None:
        absent = self.node.store.list_absent_objects(self.record.id)
        if absent and self.brings:
            slices = iter_slices(self.node.store, self.record.id, upto=version)
            needed = absent & {each.physical_hash for each in slices}
            bring_files(self.node, [(self.record, needed)] if needed else [])


@contextmanager
def frame_table(frame: pa.Table) -> Iterator[QueryTable]:
    """Give a frame as a table of queries, in a file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="odf-tables-") as folder:
        path = Path(folder, "frame.parquet")
        pq.write_table(frame, path)
        schema = data_schema_of(frame.schema.remove_metadata())
        yield QueryTable(name=FRAME, vocabulary=Vocabulary(), schema=schema, slices=(path,), is_changelog=False)
