"""Questions in SQL over the datasets of this node, as they are or as they were known at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_engines.contract import QueryRequest, QueryTable
from odf_node.ports import DatasetRecord, MetadataStore, ObjectStore
from odf_node.services.chains import iter_slices, load_view
from odf_node.services.engines import EngineHost
from odf_node.services.presence import Presence
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_ENGINE = "spark"


def may_name(sql: str, name: str) -> bool:
    """Say whether a query can mean a dataset: False only where its name is nowhere in the text."""
    return name.lower() in sql.replace("`", "").lower()


@dataclass(frozen=True, slots=True)
class QueryRunner:
    """The use case behind ``odf-node sql``."""

    store: MetadataStore
    objects: ObjectStore
    engines: EngineHost

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

        tables = tuple(table for r in self.store.list_datasets() if (table := self._table(r, sql)) is not None)
        request = QueryRequest(tables=tables, sql=sql, as_of=as_of, max_rows=max_rows, limits=self.engines.limits)
        response = self.engines.own_session(QUERY_ENGINE).query(request)
        return pq.read_table(response.result_path)

    def _table(self, record: DatasetRecord, sql: str) -> QueryTable | None:
        presence = Presence(self.store, self.objects)
        if presence.find_absent(record):
            if not may_name(sql, record.name):
                return None
            presence.require(record)
        view = load_view(self.store, record.id)
        if view.schema is None:
            return None
        slices = tuple(self.objects.get_path(item.physical_hash) for item in iter_slices(self.store, record.id))
        return QueryTable(name=record.name, vocabulary=view.vocabulary, schema=view.schema, slices=slices)
