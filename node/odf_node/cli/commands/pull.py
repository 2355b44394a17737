"""``odf-node pull``: ingest a root, run a derivative, or bring a dataset from another node."""

import argparse
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from odf_node.acceptance.offers import Subset
from odf_node.cli.context import CommandContext, parse_reference, parse_time, report_writing_time
from odf_node.cli.forecasts import describe_forecast, forecast_to_json, make_forecasting
from odf_node.cli.parsing import add_dry_run, add_output_format, add_parallel, add_rate_limit
from odf_node.cli.reports import ReportLog, describe_report, iter_rejection_lines, report_to_json
from odf_node.cli.run import report_failure
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.exchange.pulling import PullOptions
from odf_node.ingest.report import IngestReport
from odf_node.records.datasets import Origin
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.names import DatasetName
from odf_protocol.policy import Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from odf_node.exchange.forecasting import PullForecast, StepForecast
    from odf_node.exchange.pull_planning import PullTarget
    from odf_node.exchange.pulling import PullOutcome
    from odf_node.ports.progress import ProgressLine

TOPIC: Final = "make and read datasets"
HELP: Final = "ingest a root dataset, run a derivative, or bring a dataset from another node"
EXAMPLES: Final = """\
pull sales totals
pull http://peer.example:8080/prices --as peer.prices
pull --all
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="DATASET|REFERENCE|URL",
        help="a dataset of this node (name, identity, %% pattern), one in a repository (repository/[account/]name), or "
        "where another node serves one (http://host:port/name, file:///folder/name, s3://bucket/name)",
    )
    parser.add_argument("-a", "--all", action="store_true", help="every dataset that can be pulled, inputs first")
    parser.add_argument(
        "-r",
        "--recursive",
        action="store_true",
        help="inputs too, before what is derived from them; those not here yet are looked for beside it",
    )
    parser.add_argument("--no-alias", action="store_true", help="do not remember where it came from as a pull alias")
    parser.add_argument("--as", dest="local_name", metavar="NAME", help="call it so in this node")
    parser.add_argument(
        "--policy",
        choices=["reexecute", "integrity", "unsigned"],
        help="what proof is enough for another's dataset "
        "(default: re-execute derivatives; signatures and hashes for roots)",
    )
    parser.add_argument(
        "--also",
        action="append",
        metavar="URL",
        default=[],
        help="another node that has the dataset: large files are read from all at once (may be repeated)",
    )
    parser.add_argument("--identity", metavar="DID", help="reject unless the dataset is this one (did:odf:...)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="take another history than the one held here, where neither is signed; the old one is kept "
        "(inspect histories)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--metadata-only",
        dest="portion",
        action="store_const",
        const="metadata-only",
        default="everything",
        help="of others' datasets bring blocks, signatures and step records, no files: shown as metadata-only until "
        "a pull without this option fetches and checks the rest",
    )
    what.add_argument(
        "--rows-later",
        dest="portion",
        action="store_const",
        const="rows-later",
        help="of others' datasets bring all files too, also those that --metadata-only left out, each with the hash in "
        "its block, and read none: rows are checked before they are read here, and by the next pull without this "
        "option; shown as metadata-only until that pull",
    )
    parser.add_argument("--set-watermark", metavar="T", help="state that no event before T is expected; pulls nothing")
    add_dry_run(parser)
    add_rate_limit(parser)
    add_parallel(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Bring the named datasets up to date, one after the other."""
    _check(arguments)
    pull_options = _parse_options(arguments)
    context.limit_transfers(rate=arguments.limit_rate, parallel=arguments.parallel)
    node = context.node
    if arguments.dry_run:
        return await _forecast_each(context, arguments, pull_options)
    node.sweeper.clean_up()
    with ReportLog(context.console, arguments.output_format) as log:
        if arguments.set_watermark:
            _set_watermarks(context, arguments, log)
            return 0
        targets = await _plan(context, arguments)
        batch = node.batches.pull(
            targets, pull_options, partial(_progress, context), keeps_aliases=not arguments.no_alias
        )
        return await _report_each(context, batch, log, is_alone=len(targets) == 1)


def _parse_options(arguments: argparse.Namespace) -> PullOptions:
    return PullOptions(
        local_name=str(DatasetName.parse(arguments.local_name)) if arguments.local_name else None,
        policy=Policy(arguments.policy) if arguments.policy else None,
        expected_id=DatasetId.parse(arguments.identity) if arguments.identity else None,
        force=arguments.force,
        subset=Subset(arguments.portion),
        also=tuple(arguments.also),
    )


async def _plan(context: CommandContext, arguments: argparse.Namespace) -> "list[PullTarget]":
    planner = context.node.planner
    targets = planner.plan([parse_reference(each) for each in arguments.sources], everything=arguments.all)
    return await planner.plan_with_inputs(targets) if arguments.recursive else targets


async def _forecast_each(context: CommandContext, arguments: argparse.Namespace, pull_options: PullOptions) -> int:
    """Say what would be done with each (ING-25); one that fails does not stop the others."""
    targets = await _plan(context, arguments)
    failures: list[int] = []
    reported: list[dict[str, object]] = []
    for target in targets:
        try:
            with context.console.progress(f"{target.label}: asking"):
                found = await _forecast_one(context, pull_options, target)
        except OdfError as error:
            if arguments.output_format == "text":
                for line in iter_rejection_lines(error):
                    context.console.line(line)
            if len(targets) == 1:
                raise
            failures.append(report_failure(f"pull: {target.label}", error))
            continue
        name = target.record.name if target.record else getattr(found, "name", target.label)
        reported.append(report_to_json(found) if isinstance(found, IngestReport) else forecast_to_json(name, found))
        if arguments.output_format == "text":
            lines = describe_report(found) if isinstance(found, IngestReport) else describe_forecast(name, found)
            for line in lines:
                context.console.line(line)
    if arguments.output_format == "json":
        context.console.json(reported)
    return failures[0] if failures else 0


async def _forecast_one(
    context: CommandContext, pull_options: PullOptions, target: "PullTarget"
) -> "IngestReport | PullForecast | StepForecast":
    node, record = context.node, target.record
    if record is None or record.origin is not Origin.OWN:
        is_named = target.alias is not None
        return await make_forecasting(node).of_pull(
            target, local_name=pull_options.local_name if is_named else None, policy=pull_options.policy
        )
    if record.kind is DatasetKind.DERIVATIVE:
        return make_forecasting(node).of_step(record)
    return await node.ingestor.rehearsing.poll(record, writing_time=lambda each: report_writing_time(context, each))


def _check(arguments: argparse.Namespace) -> None:
    if arguments.all == bool(arguments.sources):
        raise UsageError("name what to pull, or say --all")
    for_one = {"--as": arguments.local_name, "--identity": arguments.identity, "--also": arguments.also}
    for option, value in for_one.items():
        if value and (len(arguments.sources) != 1 or "/" not in arguments.sources[0]):
            raise UsageError(f"{option} is for one dataset of another node, so pull one, by its URL or reference")
    if arguments.set_watermark and arguments.all:
        raise UsageError("--set-watermark is for datasets that are named")
    if arguments.set_watermark and arguments.dry_run:
        raise UsageError("--set-watermark pulls nothing, so there is nothing that --dry-run could say")


def _set_watermarks(context: CommandContext, arguments: argparse.Namespace, log: ReportLog) -> None:
    node = context.node
    watermark = parse_time(arguments.set_watermark, option="--set-watermark")
    for name in arguments.sources:
        report_writing_time(context, get_dataset(node.store, name))
    for stated in node.pulling.set_watermarks(arguments.sources, watermark):
        log.add(stated)


@contextmanager
def _progress(context: CommandContext, target: "PullTarget") -> "Iterator[ProgressLine]":
    if target.record is not None and target.record.origin is Origin.OWN:
        report_writing_time(context, target.record)
    with context.console.progress(f"{target.label}: starting") as progress:
        yield progress


async def _report_each(
    context: CommandContext, batch: "AsyncIterator[PullOutcome]", log: ReportLog, *, is_alone: bool
) -> int:
    """Tell what became of each; the exit code is that of the first failure."""
    failures: list[int] = []
    async for outcome in batch:
        label = outcome.target.label
        if outcome.report is not None:
            log.add(outcome.report)
        elif is_alone and outcome.failure is not None:
            raise outcome.failure
        if outcome.failure is not None:
            # Errors of ingests begin with the dataset's name.
            is_named = str(outcome.failure).startswith(f"{label}: ")
            failures.append(report_failure("pull" if is_named else f"pull: {label}", outcome.failure))
        if outcome.behind:
            context.console.warn(f"{label}: read of {', '.join(outcome.behind)} only what was here before")
    return failures[0] if failures else 0
