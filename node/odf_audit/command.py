"""``odf-node audit``: who read and wrote which version, and what follows from what."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from odf_audit.checking import check_log
from odf_audit.lineage import write_lineage
from odf_audit.lookups import AuditLookups, AuditRecord, FoundVersion, Program
from odf_audit.rerunning import configure_rerun, rerun
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.cli.run import EXIT_CODES
from odf_node.wording import count_of
from odf_protocol.errors import CorruptError

TOPIC: Final = "check and trust"
HELP: Final = "show who read and wrote which version of a dataset, and what follows from it"
EXAMPLES: Final = """\
audit who-read sales
audit who-wrote sales 17
audit inputs-of totals
audit impact-of sales 17
audit run 5f3a9c21
audit rerun 5f3a9c21
audit check
audit export lineage.ndjson
"""

_SHORT: Final = 10
_HEAD: Final = slice(-8, None)  # as ``log`` shows hashes
_ACTIONS: Final = {
    "who-read": "list who read a dataset, or one version of it",
    "who-wrote": "list who wrote a dataset, or one version of it",
    "inputs-of": "list the versions that a version was made of",
    "impact-of": "list what read a version or a later one, and what was made of that",
    "run": "show a recorded run: its program, what it read and what it wrote",
    "rerun": "start a recorded run again on the versions that it had, and compare what it writes",
    "check": "follow the chain of hashes through the whole log",
    "export": "write all recorded runs as events of OpenLineage, one a line",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(parser, _ACTIONS)
    for name in ("who-read", "who-wrote", "inputs-of", "impact-of"):
        actions[name].add_argument("dataset", metavar="DATASET", help="name or identity")
        default = "the newest one" if name in {"inputs-of", "impact-of"} else "all"
        actions[name].add_argument(
            "version", nargs="?", metavar="VERSION", help=f"a block's number, or its hash (default: {default})"
        )
    actions["who-read"].add_argument("--archives", action="store_true", help="look into archives of old reads, too")
    actions["run"].add_argument("run", metavar="RUN", help="its identity, or how that begins")
    configure_rerun(actions["rerun"])
    actions["check"].add_argument(
        "--since", metavar="HASH", help="a hash that an earlier check printed: the log must still contain it"
    )
    actions["export"].add_argument("file", metavar="FILE", help="a new file")
    for name in actions:
        add_output_format(actions[name], "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Answer."""
    lookups, as_json = AuditLookups(context.node.home), arguments.output_format == "json"
    match arguments.action:
        case "check":
            return _check(context, arguments.since, as_json=as_json)
        case "rerun":
            return rerun(context, arguments)
        case "export":
            return _export(context, lookups, Path(arguments.file), as_json=as_json)
        case "run":
            return _show_run(context, lookups, arguments.run, as_json=as_json)
    version = lookups.find_version(arguments.dataset, arguments.version)
    wanted = None if arguments.version is None else version
    match arguments.action:
        case "who-read":
            found = lookups.list_reads(version.record, wanted, with_archives=arguments.archives)
            _show(context, lookups, found, as_json=as_json, empty="no read of it is recorded")
        case "who-wrote":
            found = lookups.list_writes(version.record, wanted)
            _show(context, lookups, found, as_json=as_json, empty="no write of it is recorded")
        case "inputs-of":
            _show_inputs(context, lookups, version, as_json=as_json)
        case _:
            impact = lookups.list_impact(version)
            depths = {access.row.id: depth for access, depth in impact}
            found = [access for access, _ in impact]
            _show(
                context,
                lookups,
                found,
                as_json=as_json,
                depths=depths,
                empty="nothing that is recorded follows from it",
            )
    return 0


def describe(access: AuditRecord, program: Program) -> dict[str, Any]:
    """Give a record as JSON values."""
    row, told = access.row, access.told
    return {
        "at": str(row.entry.at),
        "does": row.entry.command,
        "dataset": told.get("name"),
        "datasetId": row.entry.subject,
        "version": access.number,
        "head": row.entry.detail,
        "asOf": told.get("asOf"),
        "what": told.get("what"),
        "times": told.get("count", 1),
        "door": told.get("door"),
        "caller": told.get("caller") or None,
        "agent": told.get("agent"),
        "work": told.get("work"),
        "thread": told.get("thread"),
        "sparkApplication": told.get("application"),
        "user": program.told.get("user"),
        "host": program.told.get("host"),
        "program": program.name,
        "gitCommit": program.told.get("gitCommit"),
        "hasChanges": program.has_changes,
        "scriptHash": program.told.get("scriptHash"),
        "run": row.run,
    }


def _show(
    context: CommandContext,
    lookups: AuditLookups,
    found: Iterable[AuditRecord],
    *,
    as_json: bool,
    empty: str,
    depths: dict[int, int] | None = None,
) -> None:
    rows, shown = [], []
    for access in found:
        program = lookups.get_program(access.row.run)
        row = describe(access, program)
        depth = {} if depths is None else {"after": depths[access.row.id]}
        rows.append(row | depth)
        person = row["caller"] or program.person
        name = row["agent"] if row["caller"] else row["work"] or program.name
        shown.append(
            depth
            | {
                "at": row["at"],
                "does": row["does"],
                "dataset": row["dataset"],
                "version": f"{access.number} {access.row.entry.detail[_HEAD]}",
                "by": person,
                "with": " ".join(filter(None, (row["door"], row["sparkApplication"], name))),
                "code": "" if row["caller"] else program.code,
                "run": (access.row.run or "")[:_SHORT],
            }
        )
    columns = {"at": "AT", "does": "DOES", "dataset": "DATASET", "version": "VERSION", "by": "BY", "with": "WITH"}
    columns = (columns if depths is None else {"after": ">STEP"} | columns) | {"code": "CODE", "run": "RUN"}
    context.console.result(rows, columns, as_json=as_json, shown=shown, empty=empty)


def _show_inputs(context: CommandContext, lookups: AuditLookups, version: FoundVersion, *, as_json: bool) -> None:
    names = {str(each.id): each.name for each in context.node.store.list_datasets()}
    rows = [
        {
            "dataset": names.get(str(given.get("id")), given.get("name")),
            "datasetId": given.get("id"),
            "version": given.get("number"),
            "head": given.get("head"),
            "asOf": given.get("asOf"),
            "thread": given.get("thread"),
            "run": access.row.run,
        }
        for access in lookups.list_writes(version.record, version)
        for given in access.inputs
    ]
    shown = [
        row
        | {
            "version": f"{'' if row['version'] is None else row['version']} {str(row['head'])[_HEAD]}".strip(),
            "asOf": row["asOf"] or "",
            "thread": row["thread"] or "",
            "run": str(row["run"])[:_SHORT],
        }
        for row in rows
    ]
    columns = {"dataset": "DATASET", "version": "VERSION", "asOf": "AS OF", "thread": "THREAD", "run": "RUN"}
    empty = f"no input of version {version.number} of '{version.record.name}' is recorded"
    context.console.result(rows, columns, as_json=as_json, shown=shown, empty=empty)


def _show_run(context: CommandContext, lookups: AuditLookups, beginning: str, *, as_json: bool) -> int:
    run_id = lookups.find_run(beginning)
    program, found = lookups.get_program(run_id), lookups.list_of_run(run_id)
    if as_json:
        records = [describe(each, program) for each in found]
        context.console.json(
            {"run": run_id, "program": program.told, "hasChanges": program.has_changes, "records": records}
        )
        return 0
    console, told = context.console, program.told
    console.line(f"run {run_id} of {program.person}, process {told.get('pid')}, in {told.get('folder')}")
    console.line(f"program: {' '.join(told.get('words', ()))}")
    script = f"; script {told['script']} (SHA3-256 {told.get('scriptHash') or 'not known'})" if "script" in told else ""
    console.line(f"code: {program.code}{script}")
    _show(context, lookups, found, as_json=False, empty="nothing that it read or wrote is recorded")
    return 0


def _check(context: CommandContext, since: str | None, *, as_json: bool) -> int:
    report = check_log(context.node.home, since)
    if as_json:
        context.console.json(asdict(report))
    elif report.problem:
        context.console.line(f"the audit log is not what was written: {report.problem}")
    else:
        parts = [count_of(report.rows, "row"), count_of(report.archives, "archive")]
        if report.first > 1:
            parts.append(f"from row {report.first}, behind the archives that were removed")
        context.console.line(f"the audit log is whole: {', '.join(parts)}; newest hash {report.newest or 'none'}")
    return EXIT_CODES[CorruptError] if report.problem else 0


def _export(context: CommandContext, lookups: AuditLookups, target: Path, *, as_json: bool) -> int:
    count = write_lineage(context.node.home, lookups, context.node.settings.lineage.namespace, target)
    context.console.json({"events": count}) if as_json else context.console.line(f"wrote {count_of(count, 'event')}")
    return 0
