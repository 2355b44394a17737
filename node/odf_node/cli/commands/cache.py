"""``odf-node cache``: free what can be had again, see what is not here, bring it back."""

import argparse
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.datasets.naming import select_datasets
from odf_node.errors import NodeBusyError
from odf_node.wording import count_of

if TYPE_CHECKING:
    from odf_node.records.datasets import DatasetRecord

TOPIC: Final = "care for this node"
HELP: Final = "free what can be had again, and bring it back"
EXAMPLES: Final = """\
cache list
cache drop totals
cache rebuild totals
cache clear
"""


_NUMBERS: Final = ("files", "bytes", "absentFiles", "absentBytes", "rowBytes")
_ACTIONS: Final = {
    "list": "show how much of each dataset's files is here, what its rows for engines take, what could be freed",
    "drop": "free the files of derivatives; blocks stay, and the files are computed again when they are needed",
    "rebuild": "bring back files that are not here: compute them again, or fetch them from where they are",
    "clear": "remove downloads that stopped, objects that no dataset names, rows for engines, what killed commands "
    "left",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    for name, child in add_actions(parser, _ACTIONS).items():
        if name != "clear":
            child.add_argument(
                "datasets",
                nargs="*" if name == "list" else "+",
                metavar="DATASET",
                help="name, identity or %% pattern" + (" (default: all)" if name == "list" else ""),
            )
        add_output_format(child, "table" if name == "list" else "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    if arguments.action == "clear":
        return _clear(context, arguments)
    chains = context.node.store
    records = select_datasets(chains, arguments.datasets) if arguments.datasets else list(chains.list_datasets())
    if arguments.action == "list":
        return _list(context, arguments, records)
    if arguments.action == "drop":
        return _drop(context, arguments, records)
    return await _rebuild(context, arguments, records)


def _list(context: CommandContext, arguments: argparse.Namespace, records: "list[DatasetRecord]") -> int:
    states = [context.node.derived_cache.describe(record) for record in records]
    rows = [
        {
            "name": state.record.name,
            "kind": state.record.kind.text,
            "files": state.files,
            "bytes": state.size_bytes,
            "absentFiles": state.absent_files,
            "absentBytes": state.absent_bytes,
            "rowBytes": state.row_bytes,
            "canBeDropped": state.can_be_dropped,
        }
        for state in states
    ]
    shown = [
        {**row, **{name: f"{row[name]:,}" for name in _NUMBERS}, "canBeDropped": "yes" if row["canBeDropped"] else "no"}
        for row in rows
    ]
    columns = {"name": "NAME", "kind": "KIND", "files": ">FILES", "bytes": ">BYTES", "absentFiles": ">NOT HERE"}
    columns |= {"absentBytes": ">BYTES NOT HERE", "rowBytes": ">ROWS FOR ENGINES", "canBeDropped": "CAN BE DROPPED"}
    as_json = arguments.output_format == "json"
    context.console.result(rows, columns, as_json=as_json, shown=shown, empty="this node has no datasets yet")
    return 0


def _drop(context: CommandContext, arguments: argparse.Namespace, records: "list[DatasetRecord]") -> int:
    node, reports = context.node, []
    for record in records:
        report = node.derived_cache.drop(record)
        reports.append(report)
        if report.files:
            node.record("cache drop", record.name, f"{report.size_bytes} bytes")
        if arguments.output_format == "text":
            context.console.text(f"{record.name}: freed {count_of(report.files, 'file')}, {report.size_bytes:,} bytes")
            if report.kept_files:
                context.console.text(f"{record.name}: {report.kept_files:,} files stay: something else names them too")
    if arguments.output_format == "json":
        context.console.json(
            [
                {
                    "dataset": report.record.name,
                    "freedFiles": report.files,
                    "freedBytes": report.size_bytes,
                    "keptFiles": report.kept_files,
                }
                for report in reports
            ]
        )
    return 0


async def _rebuild(context: CommandContext, arguments: argparse.Namespace, records: "list[DatasetRecord]") -> int:
    node, reports = context.node, []
    node.sweeper.clean_up()
    context.limit_transfers()
    for record in records:
        with context.console.progress(f"{record.name}: looking") as progress:
            report = await node.bringing.bring(record, None, progress)
        reports.append(report)
        if report.size_bytes:
            node.record("cache rebuild", record.name, f"{report.size_bytes} bytes")
        if arguments.output_format == "json":
            continue
        if not report.rebuilt_files and not report.fetched_files:
            context.console.text(f"{record.name}: every file is here")
        if report.rebuilt_files:
            context.console.text(
                f"{record.name}: {count_of(report.rebuilt_files, 'file')} computed again, equal to the bit"
            )
        for failure in report.failures:
            context.console.line(f"{record.name}: note: {failure}")
        if report.fetched_files:
            where = ", ".join(report.sources) or "earlier downloads"
            context.console.text(f"{record.name}: {count_of(report.fetched_files, 'file')} fetched from {where}")
    if arguments.output_format == "json":
        context.console.json(
            [
                {
                    "dataset": report.record.name,
                    "rebuiltFiles": report.rebuilt_files,
                    "fetchedFiles": report.fetched_files,
                    "bytes": report.size_bytes,
                    "sources": report.sources,
                    "notes": report.failures,
                }
                for report in reports
            ]
        )
    return 0


def _clear(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Clear, unless somebody is writing just now."""
    report = context.node.sweeper.clear_cache()
    if not report.ran:
        raise NodeBusyError("another command is writing; nothing was removed, try again when it has ended")
    if report.objects or report.staged_files or report.row_files:
        context.node.record("cache clear", "", f"{report.freed_bytes} bytes")
    if arguments.output_format == "json":
        context.console.json(
            {
                "objects": report.objects,
                "stagedFiles": report.staged_files,
                "rowFiles": report.row_files,
                "freedBytes": report.freed_bytes,
            }
        )
        return 0
    context.console.text(
        f"removed {count_of(report.objects, 'object')}, {count_of(report.staged_files, 'unfinished file')} and "
        f"{count_of(report.row_files, 'file')} of rows for engines, {report.freed_bytes:,} bytes"
    )
    return 0
