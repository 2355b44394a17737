"""What others said and is passed on."""

from collections.abc import Iterable

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import as_bytes
from odf_node.ports.gossip import KeptItem


class SqliteGossipItems(SqlitePort):
    """``GossipItems`` on SQLite."""

    def change_gossip_items(self, added: Iterable[KeptItem], removed: Iterable[bytes]) -> None:
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO gossip_items (id, kind, raw) VALUES (?, ?, ?)",
                ((item.id, item.kind, item.raw) for item in added),
            )
            connection.executemany("DELETE FROM gossip_items WHERE id = ?", ((id_,) for id_ in removed))

    def list_gossip_items(self) -> tuple[KeptItem, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id, kind, raw FROM gossip_items ORDER BY arrival").fetchall()
        return tuple(KeptItem(as_bytes(id_), str(kind), as_bytes(raw)) for id_, kind, raw in rows)
