"""The ports about what a home knows, in memory: for use cases without a disk, gone with the process.

``tables`` is what all ports share, as the database is on SQLite; each port has its module and class, ``store`` joins
them. A lock stands for the transaction: nothing is changed before everything was checked.
"""

from odf_node.adapters.memory.store import MemoryStore

__all__ = ["MemoryStore"]
