"""Small tables that were made of files, kept by a process up to some bytes, those used longest ago dropped first."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class KeptTables:
    """Up to ``limit_bytes`` of values; used by many threads, as a daemon does several pieces of work at once."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._tables: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: Hashable) -> "pa.Table | None":
        """Return a table that is still here."""
        with self._lock:
            if (found := self._tables.get(name)) is not None:
                self._tables.move_to_end(name)
            return found

    def keep(self, name: Hashable, table: "pa.Table") -> None:
        """Keep a table that is not here yet."""
        with self._lock:
            if name not in self._tables:
                self._tables[name] = table
                self.size_bytes += table.nbytes
            while self.size_bytes > self.limit_bytes:
                _, dropped = self._tables.popitem(last=False)
                self.size_bytes -= dropped.nbytes
