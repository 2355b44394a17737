"""The ports about what a home knows, in memory: what the real store is compared with, and use cases without a disk.

``tables`` is what all ports share, as the database is on SQLite; each port has its module and class, ``store`` joins
them. A lock stands for the transaction: nothing is changed before everything was checked.
"""

from support.memory_store.store import MemoryStore

__all__ = ["MemoryStore"]
