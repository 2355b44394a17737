"""``odf-node push``: offer a dataset to another node."""

import argparse
import os
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext, parse_reference
from odf_node.cli.forecasts import describe_forecast, forecast_to_json, make_forecasting
from odf_node.cli.parsing import add_dry_run, add_output_format, add_parallel, add_rate_limit
from odf_node.cli.run import report_failure
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UsageError
from odf_node.exchange.logins import is_server, parse_origin
from odf_node.records.datasets import RemoteDirection
from odf_protocol.errors import OdfError

if TYPE_CHECKING:
    from odf_node.records.datasets import DatasetRecord

TOPIC: Final = "exchange with others"
HELP: Final = "offer a dataset to another node"
EXAMPLES: Final = """\
push sales --to http://peer.example:8080/sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="name, identity or %% pattern")
    parser.add_argument("-a", "--all", action="store_true", help="every dataset that has a push alias")
    parser.add_argument(
        "--to",
        metavar="REFERENCE|URL",
        help="where: http://host:port/name, odf+http://…, repository/[account/]name, file:///folder/name, "
        "s3://bucket/name (default: the dataset's push aliases)",
    )
    parser.add_argument("--no-alias", action="store_true", help="do not remember --to as a push alias")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        default=os.environ.get("ODF_NODE_TOKEN"),
        help="what the other node gave you (default: $ODF_NODE_TOKEN, else that of 'odf-node login')",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="where the other node has another history: ask it to replace that one (odf+http addresses)",
    )
    parser.add_argument(
        "--visibility",
        choices=("private", "public"),
        default="private",
        help="who may see a dataset that is new there (odf+http addresses; default: private)",
    )
    add_dry_run(parser)
    add_rate_limit(parser)
    add_parallel(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Send what the other nodes lack; they verify everything before they accept."""
    node, console = context.node, context.console
    context.limit_transfers(rate=arguments.limit_rate, parallel=arguments.parallel)
    jobs = _plan(context, arguments)
    if arguments.token:
        _require_one_server([address for _, address in jobs])
    if arguments.dry_run:
        return await _forecast_each(context, arguments, jobs)
    failures: list[int] = []
    outcomes: list[dict[str, object]] = []
    for record, address in jobs:
        try:
            with console.progress(f"{record.name}: asking {address}") as progress:
                outcome = await node.pushing.push(
                    record,
                    address,
                    token=arguments.token,
                    progress=progress,
                    force=arguments.force,
                    public=arguments.visibility == "public",
                )
        except OdfError as error:
            if len(jobs) == 1:
                raise
            # One that fails does not stop the others (REPO-4).
            failures.append(report_failure(f"push: {record.name}", error))
            continue
        if arguments.to and not arguments.no_alias:
            node.remotes.add_alias(record, RemoteDirection.PUSH, parse_reference(arguments.to))
        outcomes.append(
            {
                "dataset": record.name,
                "to": outcome.url,
                "upToDate": outcome.was_up_to_date,
                "sentBlocks": outcome.sent_blocks,
                "sentBytes": outcome.sent_bytes,
            }
        )
        if arguments.output_format == "json":
            continue
        if outcome.was_up_to_date:
            console.text(f"{record.name}: {outcome.url} has everything already")
        else:
            did = "verified and accepted" if outcome.is_verified else "took"
            console.text(f"{record.name}: {outcome.url} {did} {outcome.sent_blocks} new blocks")
    if arguments.output_format == "json":
        # One place gives one object; aliases, which may be none or many, a list.
        console.json(outcomes[0] if arguments.to else outcomes)
    return failures[0] if failures else 0


def _require_one_server(addresses: "list[str]") -> None:
    """Stop before one server is shown the token of another (HOME-23)."""
    origins = {parse_origin(address) for address in addresses if is_server(address)}
    if len(origins) > 1:
        raise UsageError(
            f"one token is for one server, and these pushes go to {', '.join(sorted(origins))}: push to one of them "
            "with --to, or unset ODF_NODE_TOKEN; 'odf-node login' keeps a token for each"
        )


async def _forecast_each(
    context: CommandContext, arguments: argparse.Namespace, jobs: "list[tuple[DatasetRecord, str]]"
) -> int:
    """Say what would be sent (ING-25)."""
    reported = []
    for record, address in jobs:
        with context.console.progress(f"{record.name}: asking {address}"):
            found = await make_forecasting(context.node).of_push(record, address)
        reported.append(forecast_to_json(record.name, found))
        if arguments.output_format == "text":
            for line in describe_forecast(record.name, found):
                context.console.line(line)
    if arguments.output_format == "json":
        context.console.json(reported[0] if arguments.to else reported)
    return 0


def _plan(context: CommandContext, arguments: argparse.Namespace) -> "list[tuple[DatasetRecord, str]]":
    """Say which dataset goes where."""
    node = context.node
    if arguments.all == bool(arguments.datasets):
        raise UsageError("name what to push, or say --all")
    if arguments.all and arguments.to:
        raise UsageError("--all pushes to aliases, so leave out --to")
    records = list(node.store.list_datasets()) if arguments.all else select_datasets(node.store, arguments.datasets)
    if arguments.to:
        if len(records) > 1:
            raise UsageError(f"--to names one dataset's place, and {len(records)} are to be pushed")
        return [(records[0], node.remotes.resolve(parse_reference(arguments.to)))]
    jobs = []
    for record in records:
        addresses = node.remotes.list_addresses(record, RemoteDirection.PUSH)
        if not addresses and not arguments.all:
            raise UsageError(f"'{record.name}' has no push alias; say where with --to, which is then remembered")
        jobs += [(record, address) for address in addresses]
    return jobs
