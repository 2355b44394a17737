"""Python's way in: a node, its datasets as tables, questions, pulls and verifications.

Example:
    >>> import odf_node
    >>> with odf_node.open() as node:                                   # doctest: +SKIP
    ...     node.pull("https://example.org:8085/covid.countries")
    ...     frame = node.table("covid.countries").state().to_pandas()

Every method calls the use case that the command of the same name calls, and raises the same errors, all of them
``OdfError``. What is read was verified when it was accepted. A node is used by one thread at a time.

Source: clauses PYTHON-1 to PYTHON-6 in ``spec/python.md``.
"""

from odf_node.front.opening import OpenNode, open_front
from odf_node.front.tables import Dataset, Rows, Table

__all__ = ["Dataset", "OpenNode", "Rows", "Table", "open_front"]
