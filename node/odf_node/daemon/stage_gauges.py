"""Figures of ingests by stage and plug-in, and of what observers could tell.

Source: clauses STAGE-5 in ``spec/observing.md`` and OBSERVE-3 in ``spec/observing.md``.
"""

from collections.abc import Callable, Iterator, Mapping

from odf_node.metrics import Labels, Metrics
from odf_node.ports.ingests import StageStore, StageTotal
from odf_protocol.errors import OdfError


def add_stage_figures(metrics: Metrics, stages: StageStore) -> None:
    """Add what all ingests of this home did, whichever command they ran in.

    Names of stages are fixed, and as many plug-ins have a name here as the store sums by name.
    """

    def list_totals() -> list[StageTotal]:
        try:
            return stages.list_stage_totals()
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
