"""Figures of one node that are read when somebody asks."""

import shutil
from collections.abc import Callable, Iterator, Mapping

from odf_node.composition import Node
from odf_node.daemon.supervisor import open_descriptors, process_memory_bytes
from odf_node.derive.step_log import StepLog, StoredStep
from odf_node.metrics import Metrics
from odf_node.ports.metrics import Labels
from odf_node.records.datasets import Origin
from odf_node.records.ingests import StageTotal
from odf_node.row_counts import CHANGES
from odf_node.store import MetadataStore
from odf_node.upkeep.scrubbing import read_scrub_state
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.step_metrics import StepMetrics


def make_metrics(node: Node) -> Metrics:
    """Make the figures of a node; reading them never fails, a figure that cannot be had is left out."""
    metrics = Metrics()

    def count_datasets() -> float | None:
        try:
            return len(node.store.list_datasets())
        except OdfError:
            return None

    def count_blocks() -> float | None:
        try:
            return sum(record.head.sequence_number + 1 for record in node.store.list_datasets())
        except OdfError:
            return None

    def free_bytes() -> float | None:
        try:
            return shutil.disk_usage(node.home.folder.path).free
        except OSError:
            return None

    def database_bytes() -> float | None:
        try:
            return node.home.folder.database.stat().st_size
        except OSError:
            return None

    def damaged() -> float | None:
        return len(read_scrub_state(node.home.folder.cache).damaged)

    def scrubbed() -> float | None:
        return read_scrub_state(node.home.folder.cache).checked

    metrics.add_gauge("damaged_objects", "Objects whose bytes decayed or are gone, as the last scrub found.", damaged)
    metrics.add_gauge("scrubbed_objects", "Objects that the round of the scrub has read.", scrubbed)
    metrics.add_gauge("datasets", "Datasets in the home.", count_datasets)
    metrics.add_gauge("blocks", "Blocks of all chains.", count_blocks)
    metrics.add_gauge("database_bytes", "Size of the home's database.", database_bytes)
    metrics.add_gauge("free_bytes", "Room on the home's disk.", free_bytes)
    metrics.add_gauge("memory_bytes", "Resident memory of the daemon.", process_memory_bytes)
    metrics.add_gauge("open_descriptors", "Open files and connections of the daemon.", open_descriptors)
    add_step_metrics(metrics, node.store)
    add_stage_metrics(metrics, node.store)
    add_ingest_figures(metrics, node.store)
    add_observer_figures(metrics, lambda: node.observer.counts)
    return metrics


def add_step_metrics(metrics: Metrics, store: MetadataStore) -> None:
    """Add what the newest step of each derivative of this node did (REPLAY-13)."""
    steps = StepLog(store)
    known: dict[DatasetId, tuple[Multihash, StoredStep | None]] = {}

    def iter_newest() -> Iterator[tuple[str, StepMetrics]]:
        """Read the records of derivatives that grew since somebody asked last; there may be thousands of others."""
        try:
            for record in store.list_datasets():
                if record.origin is not Origin.OWN or record.kind is not DatasetKind.DERIVATIVE:
                    continue
                head, newest = known.get(record.id, (None, None))
                if head != record.head.hash:
                    newest = steps.find_newest(record)
                    known[record.id] = record.head.hash, newest
                if newest is not None:
                    yield record.name, newest.statistics
        except OdfError:
            return

    def rows() -> dict[Labels, float]:
        return {
            (("dataset", name), ("rows", what)): count
            for name, did in iter_newest()
            for what, count in (
                ("read", did.total_read),
                ("appended", did.rows_out.append),
                ("retracted", did.rows_out.retract),
                ("corrected", did.rows_out.correct_to),
                ("late", did.late_rows),
                ("known", did.state_after.rows),
            )
        }

    def seconds() -> dict[Labels, float]:
        return {
            (("dataset", name), ("part", part)): spent / 1000
            for name, did in iter_newest()
            for part, spent in did.milliseconds.items()
        }

    metrics.add_family("step_rows", "Rows of the newest step of each derivative of this node, by what they were.", rows)
    metrics.add_family("step_seconds", "What of the newest step of each derivative took how long.", seconds)


def add_stage_metrics(metrics: Metrics, store: MetadataStore) -> None:
    """Add what all ingests of this home did, whichever command they ran in.

    Names of stages are fixed, and as many plug-ins have a name here as the store sums by name.
    """

    def list_totals() -> list[StageTotal]:
        try:
            return store.list_stage_totals()
        except OdfError:
            return []

    def seconds() -> dict[Labels, float]:
        return {_labels(each): each.seconds for each in list_totals()}

    def rows() -> dict[Labels, float]:
        return {
            (*_labels(each), ("rows", what)): count
            for each in list_totals()
            for what, count in (("in", each.rows_in), ("out", each.rows_out), ("bad", each.bad_rows))
        }

    def batches() -> dict[Labels, float]:
        return {_labels(each): each.batches for each in list_totals()}

    for kind, of_what, is_wanted in (
        ("stage", "stage", lambda labels: "plug_in" not in dict(labels)),
        ("plug_in", "plug-in", lambda labels: "plug_in" in dict(labels)),
    ):
        for name, meaning, read in (
            ("seconds", f"Time that each {of_what} of all ingests took.", seconds),
            ("rows", f"Rows that each {of_what} of all ingests was given, passed on and found bad.", rows),
            ("batches", f"Batches that each {of_what} saw.", batches),
        ):
            wanted = _filtered(read, is_wanted)
            metrics.add_family(f"ingest_{kind}_{name}_total", meaning, wanted, kind="counter")


def add_ingest_figures(metrics: Metrics, store: MetadataStore) -> None:
    """Add what became of the rows of the newest ingest of each root, whichever command it ran in (STAGE-6)."""

    def rows() -> dict[Labels, float]:
        try:
            newest = store.list_newest_row_counts()
        except OdfError:
            return {}
        return {
            (("dataset", name), ("rows", what)): counts[f"{what}Rows"]
            for name, counts in newest
            for what in (*CHANGES, "quarantined")
            if counts[f"{what}Rows"] is not None
        }

    meaning = "Rows of the newest ingest of each dataset that made a block, by what became of them."
    metrics.add_family("ingest_rows", meaning, rows)


def _labels(total: StageTotal) -> Labels:
    stage = ("stage", total.stage)
    return (stage, ("plug_in", total.plug_in)) if total.plug_in else (stage,)


def _filtered(
    read: Callable[[], Mapping[Labels, float]], is_wanted: Callable[[Labels], bool]
) -> Callable[[], dict[Labels, float]]:
    return lambda: {labels: value for labels, value in read().items() if is_wanted(labels)}


def add_observer_figures(metrics: Metrics, read: Callable[[], Mapping[str, Mapping[str, int]]]) -> None:
    """Add how much of traces and lineage this process sent, and how much of it was lost."""

    def iter_counts() -> Iterator[tuple[Labels, float]]:
        for what, counts in read().items():
            for result, count in counts.items():
                yield (("what", what), ("result", result)), count

    meaning = "Spans and lineage events of this process, by what became of them."
    metrics.add_family("observing_items_total", meaning, lambda: dict(iter_counts()), kind="counter")
