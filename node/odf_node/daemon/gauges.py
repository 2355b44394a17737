"""Figures of one node that are read when somebody asks."""

import shutil

from odf_node.composition import Node
from odf_node.daemon.supervisor import open_descriptors, process_memory_bytes
from odf_node.metrics import Metrics
from odf_node.upkeep.scrubbing import read_scrub_state
from odf_protocol.errors import OdfError


def make_metrics(node: Node) -> Metrics:
    """Make the figures of a node; reading them never fails, a figure that cannot be had is left out."""
    metrics = Metrics()

    def count_datasets() -> float | None:
        try:
            return len(node.chains.list_datasets())
        except OdfError:
            return None

    def count_blocks() -> float | None:
        try:
            return sum(record.head.sequence_number + 1 for record in node.chains.list_datasets())
        except OdfError:
            return None

    def free_bytes() -> float | None:
        try:
            return shutil.disk_usage(node.home.path).free
        except OSError:
            return None

    def database_bytes() -> float | None:
        try:
            return node.home.database.stat().st_size
        except OSError:
            return None

    def damaged() -> float | None:
        return len(read_scrub_state(node.home.cache).damaged)

    def scrubbed() -> float | None:
        return read_scrub_state(node.home.cache).checked

    metrics.add_gauge("damaged_objects", "Objects whose bytes decayed or are gone, as the last scrub found.", damaged)
    metrics.add_gauge("scrubbed_objects", "Objects that the round of the scrub has read.", scrubbed)
    metrics.add_gauge("datasets", "Datasets in the home.", count_datasets)
    metrics.add_gauge("blocks", "Blocks of all chains.", count_blocks)
    metrics.add_gauge("database_bytes", "Size of the home's database.", database_bytes)
    metrics.add_gauge("free_bytes", "Room on the home's disk.", free_bytes)
    metrics.add_gauge("memory_bytes", "Resident memory of the daemon.", process_memory_bytes)
    metrics.add_gauge("open_descriptors", "Open files and connections of the daemon.", open_descriptors)
    return metrics
