"""What datasets say of themselves."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int
from odf_node.ports.datasets import BlockRole
from odf_protocol.did import DatasetId

_PAGE_DATASETS: Final = 500  # one read transaction each, as elsewhere

# In this order of tables the index blocks_by_role is used, and no block with rows is looked at.
_PAGE: Final = (
    "SELECT d.key, d.id, b.raw FROM (SELECT key, id FROM datasets WHERE key > ? ORDER BY key LIMIT ?) d"
    " CROSS JOIN blocks b ON b.dataset = d.key AND b.role = ? ORDER BY d.key"
)


class SqliteDefinitions(SqlitePort):
    """``DefinitionStore`` on SQLite."""

    def iter_definitions(self) -> Iterator[tuple[DatasetId, bytes]]:
        after = -1
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(_PAGE, (after, _PAGE_DATASETS, BlockRole.DEFINITION)).fetchall()
            if not rows:
                return
            for _, found in groupby(rows, key=lambda row: as_int(row[0])):
                blocks = list(found)
                yield DatasetId.decode(as_bytes(blocks[0][1])), b"\0".join(as_bytes(row[2]) for row in blocks)
            after = as_int(rows[-1][0])
