"""Counts the datasets of the node every tenth of a second. The one file of an external package that adds work."""

from odf_node.composition import Node
from odf_node.daemon.background_work import RepeatedWork


def count(node: Node) -> None:
    """Write the count beside the home."""
    count_file = node.home.folder.path.with_suffix(".counted")
    count_file.write_text(str(len(node.store.list_datasets())))


WORK = RepeatedWork(0.1, count)
