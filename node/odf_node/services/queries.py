"""Questions in SQL over the datasets of this node, as they are or as they were known at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_engines.contract import QueryRequest, QueryTable
from odf_node.ports import DatasetRecord, MetadataStore, ObjectStore
from odf_node.services.chains import iter_slices, load_view
from odf_node.services.engines import EngineHost
from odf_node.services.presence import Presence
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_ENGINE = "spark"


@dataclass(frozen=True, slots=True)
class QueryRunner:
    """The use case behind ``odf-node sql``."""

    store: MetadataStore
    objects: ObjectStore
    engines: EngineHost

    def list_absent(self, sql: str, *, as_of: Timestamp | None) -> list[tuple[DatasetRecord, frozenset[Multihash]]]:
        """List the files that a query needs and that are not here by choice, by dataset (PART-9)."""
        found = []
        for record in self.store.list_datasets():
            absent = self.store.list_absent_objects(record.id) if record.name in sql else frozenset()
            if absent:
                slices = iter_slices(self.store, record.id, as_of=as_of)
                needed = absent & {item.physical_hash for item in slices}
                found += [(record, needed)] if needed else []
        return found

    def run(self, sql: str, *, as_of: Timestamp | None, max_rows: int | None) -> "pa.Table":
        """Answer one query.

        Args:
            sql: In the engine's dialect; datasets that have data are tables under their names.
            as_of: Only rows that had been written by then are seen.
            max_rows: Cut the answer there, None for all of it.

        Raises:
            ObjectsAbsentError: It names a dataset whose files are not all here.
            InvalidQueryError: It is no query, names what is not there, or fails on a value.
        """
        import pyarrow.parquet as pq

        tables = tuple(table for r in self.store.list_datasets() if (table := self._table(r, sql, as_of)) is not None)
        request = QueryRequest(tables=tables, sql=sql, as_of=as_of, max_rows=max_rows, limits=self.engines.limits)
        response = self.engines.own_session(QUERY_ENGINE).query(request)
        return pq.read_table(response.result_path)

    def _table(self, record: DatasetRecord, sql: str, as_of: Timestamp | None) -> QueryTable | None:
        view = load_view(self.store, record.id)
        if view.schema is None:
            return None
        hashes = [item.physical_hash for item in iter_slices(self.store, record.id, as_of=as_of)]
        presence = Presence(self.store, self.objects)
        if presence.find_absent(record):
            if record.name not in sql:
                return None  # the engine does not look at it either
            presence.require(record, hashes)
        slices = tuple(self.objects.get_path(item) for item in hashes)
        return QueryTable(name=record.name, vocabulary=view.vocabulary, schema=view.schema, slices=slices)
