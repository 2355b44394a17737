"""What a derivative's query is, and what its next step would read and cost (PLAN-16)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import read_input
from odf_node.datasets.ingest_metrics import stages_to_json
from odf_node.datasets.naming import get_dataset
from odf_node.derive.step_log import StepLog, describe_step, explain_time
from odf_node.derive.step_plans import StepPlan, StepPlanner
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.records.ingests import KEPT_INGESTS
from odf_protocol.enums import DatasetKind
from odf_protocol.manifest import parse_snapshots

_COLUMNS: Final = {
    "alias": "INPUT",
    "name": "DATASET",
    "newRows": ">NEW ROWS",
    "readRows": ">READS ROWS",
    "readBytes": ">BYTES",
    "waitingRows": ">LEFT FOR LATER",
    "watermark": "WATERMARK",
}

_ROOT: Final = DatasetKind.ROOT
_STAGE_COLUMNS: Final = {
    "stage": "STAGE",
    "plugIn": "PLUG-IN",
    "seconds": ">SECONDS",
    "rowsIn": ">ROWS IN",
    "rowsOut": ">OUT",
    "badRows": ">BAD",
}


def show_plans(context: CommandContext, subject: str, *, as_json: bool) -> None:
    """Show the plan of a derivative, or those of the derivatives of a manifest; of a root its newest ingest.

    Raises:
        UnknownDatasetError: There is neither a dataset nor a file of that name.
        UsageError: Of a root no figures are kept.
    """
    node = context.node
    root = next((each for each in node.store.list_datasets() if each.name == subject and each.kind is _ROOT), None)
    if root is not None:
        _show_ingest(context, root, as_json=as_json)
        return
    parts = StepLog(node.store), node.grader, node.transformer.bound
    with context.console.progress("looking at the query"):
        try:
            record = get_dataset(node.store, subject)
            plans = [StepPlanner(node.store, node.transformer.builder_of(record), *parts).plan_dataset(record)]
        except UnknownDatasetError:
            if not Path(subject).is_file():
                raise
            text = read_input(subject)
            named = parse_snapshots(text, source_name=subject)
            check = partial(node.ingestor.check_manifest, added=named)
            snapshots = parse_snapshots(text, source_name=subject, check=check)
            plans = StepPlanner(node.store, node.transformer.builder, *parts).plan_snapshots(snapshots)
    if as_json:
        context.console.json([each.to_json() for each in plans])
        return
    for plan in plans:
        for line in _iter_lines(plan):
            context.console.text(line)
        context.console.table(plan.to_json()["inputs"], _COLUMNS)


def _show_ingest(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show what the newest ingest of a root did, stage by stage (STAGE-4).

    Raises:
        UsageError: Nothing is kept of one.
    """
    blocks = context.node.read_models.chain_log.read(record, limit=KEPT_INGESTS)
    newest = next((each for each in blocks if each.stages), None)
    if newest is None:
        raise UsageError(f"'{record.name}' is a root, and no figures of an ingest are kept beside its newest blocks")
    number, stages = newest.block.sequence_number, stages_to_json(newest.stages)
    if as_json:
        context.console.json([{"dataset": record.name, "block": number, "stages": stages}])
        return
    context.console.text(f"{record.name}, newest ingest: block {number}, {newest.did}")
    context.console.table(stages, _STAGE_COLUMNS)


def _iter_lines(plan: StepPlan) -> Iterator[str]:
    yield f"{plan.dataset} (engine {plan.engine})"
    graded, rejection = plan.graded, plan.graded.rejection
    if rejection is not None:
        yield f"  rejected    {rejection.expression}: {rejection.reason}"
        yield f"  would pass {rejection.rewrite}"
    elif graded.grade is None:
        yield f"  class      not known before its first step: {graded.reason}"
    else:
        yield f"  class      {plan.kind}: {plan.meaning}"
        yield f"  grade      {graded.grade.level.value}"
        yield from (f"             {each.expression}: {each.reason}" for each in graded.grade.findings)
        if plan.kind == "maintained":
            key = plan.key
            shown = "none: a changed row is retracted and appended" if key is None else ", ".join(key) or "one row"
            yield f"  key        {shown}"
    for position, stage in enumerate(plan.stages):
        yield f"  {'stages' if position == 0 else '':<10} {position + 1}. {stage}"
    if plan.kind is not None:
        yield f"  a step     computes {plan.cost}"
    if (newest := plan.newest) is not None:
        yield f"  newest one block {newest.sequence_number}: {describe_step(newest.statistics, newest.basis)}"
        yield from (f"             {line}" for line in explain_time(newest.statistics))
    for name in graded.waits_for:
        yield f"  waiting    {name} has stated no watermark so far, and what waits for one is not given"
    if graded.states_no_watermark:
        yield f"  watermark  none: {graded.states_no_watermark}"
    if plan.inputs:
        yield "  next step  reads" if plan.is_due else "  next step  none: its inputs gained nothing since the last one"
