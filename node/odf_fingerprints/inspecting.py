"""``odf-node inspect fingerprint``: what a version looks like, before or after its rows are here.

``ACTIONS`` is found by its entry point in the group ``odf_node.actions``.

Source: clauses FP-13 and FP-15 in ``spec/plug-ins/fingerprints.md``.
"""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any, Final

from odf_fingerprints.checking import report_false
from odf_fingerprints.documents import ColumnFingerprint, RowsFingerprint
from odf_fingerprints.exchange import fetch_fingerprints
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.reading import VersionFingerprint, fold_versions, foresee_versions, read_fingerprints
from odf_fingerprints.views import draw_together, drift_values, show_number, version_values
from odf_node.cli.actions import CommandActions
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.run import EXIT_CODES
from odf_node.datasets.naming import get_dataset
from odf_node.errors import ObjectsAbsentError, UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.wording import count_of
from odf_protocol.errors import RejectedError

_EXAMPLES: Final = """\
inspect fingerprint sales
inspect fingerprint sales 12 15
inspect fingerprint sales 12 15 --added --json
inspect fingerprint sales --remote
inspect fingerprint http://peer.example:8080/sales
inspect fingerprint sales --check
"""
_LINES: Final = {"fingerprint": "what a version of a dataset looks like, and how two versions differ"}


def configure(_name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("subject", metavar="DATASET|URL", help="name or identity, or its address at another node")
    parser.add_argument(
        "version", type=whole_number(0), nargs="?", metavar="A", help="number of a block with rows (default: newest)"
    )
    parser.add_argument("other", type=whole_number(0), nargs="?", metavar="B", help="a version that A is compared with")
    parser.add_argument(
        "--added", action="store_true", help="compare what the two versions added, not what stood after them"
    )
    parser.add_argument(
        "--remote", action="store_true", help="ask the node that the dataset was pulled from for later versions, too"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare what other nodes stated with the rows that are here"
    )
    add_output_format(parser, "text", "json")
    parser.add_argument("--json", dest="output_format", action="store_const", const="json", help="the same as -o json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show it; the exit code is that of a rejection where another node stated what the rows do not give."""
    context.load_settings()
    as_json = arguments.output_format == "json"
    if arguments.check:
        record = get_dataset(context.node.store, arguments.subject)
        with context.console.progress(f"{record.name}: checking fingerprints"):
            return EXIT_CODES[RejectedError] if report_false(context, record, as_json=as_json) else 0
    name, versions = await _find_versions(context, arguments.subject, is_remote=arguments.remote)
    if not versions:
        raise UsageError(f"'{name}' has no version with rows whose fingerprint is known")
    one = _choose(versions, arguments.version, name)
    if arguments.other is None:
        _show(context, name, one, as_json=as_json)
    else:
        other = _choose(versions, arguments.other, name)
        _compare(context, name, one, other, is_added=arguments.added, as_json=as_json)
    return 0


async def _find_versions(
    context: CommandContext, which: str, *, is_remote: bool
) -> tuple[str, Sequence[VersionFingerprint]]:
    node = context.node
    if "://" in which:
        fetched = await fetch_fingerprints(node.outgoing, which, dataset=None)
        return which, fold_versions(fetched)
    record = get_dataset(node.store, which)
    with context.console.progress(f"{record.name}: describing rows"):
        here = await asyncio.to_thread(_make, context, record)
    if not is_remote:
        return record.name, here
    if record.origin_url is None:
        raise UsageError(f"'{record.name}' is this node's own: there is no node that it was pulled from")
    fetched = await fetch_fingerprints(node.outgoing, record.origin_url, dataset=record.id)
    versions = foresee_versions(node.home, record, fetched)
    KeptFingerprints(node.home.folder).put(record.id, fetched)
    return record.name, versions


def _make(context: CommandContext, record: DatasetRecord) -> Sequence[VersionFingerprint]:
    home = context.node.home
    with FingerprintMaker(home) as maker:
        for _ in range(2):  # a cache whose damage is found when it is read is begun anew
            try:
                maker.make(record)
            except ObjectsAbsentError as error:
                context.console.note(str(error))
                break
            if found := read_fingerprints(home, record):
                return found
    return read_fingerprints(home, record)


def _choose(versions: Sequence[VersionFingerprint], number: int | None, name: str) -> VersionFingerprint:
    if number is None:
        return versions[-1]
    found = next((each for each in versions if each.sequence == number), None)
    if found is None:
        near = min(versions, key=lambda each: abs(each.sequence - number)).sequence
        raise UsageError(f"'{name}' has no rows in block {number}; the nearest version with rows is {near}")
    return found


def _show(context: CommandContext, name: str, version: VersionFingerprint, *, as_json: bool) -> None:
    if as_json:
        context.console.json({"dataset": name, **version_values(version)})
        return
    append, retract, correct_from, _ = version.fingerprint.operations
    context.console.text(
        f"version {version.sequence} of {name}, {version.fingerprint.system_time}: {count_of(append, 'row')} added, "
        f"{correct_from:,} corrected, {retract:,} retracted; {count_of(version.current.rows, 'row')} after it "
        f"({_describe_origin(version)})"
    )
    rows = [_row(column, version.current) for column in version.added.columns or version.current.columns]
    headings = {
        "name": "COLUMN",
        "nulls": ">NULLS",
        "distinct": ">DISTINCT",
        "min": ">MIN",
        "median": ">MEDIAN",
        "max": ">MAX",
        "added": "ADDED",
        "current": "AFTER",
    }
    context.console.table(rows, headings)


def _row(column: ColumnFingerprint, current: RowsFingerprint) -> dict[str, Any]:
    added, after = draw_together([column, current.column(column.name)])
    distinct = column.distinct_values()
    return {
        "name": column.name,
        "nulls": f"{column.null_share:.1%}",
        "distinct": "" if distinct is None else f"{'' if column.distinct is not None else '~'}{distinct:,.0f}",
        "min": show_number(column, column.minimum),
        "median": show_number(column, column.quantile(0.5)),
        "max": show_number(column, column.maximum),
        "added": f"|{added}|",
        "current": f"|{after}|",
    }


def _compare(
    context: CommandContext,
    name: str,
    one: VersionFingerprint,
    other: VersionFingerprint,
    *,
    is_added: bool,
    as_json: bool,
) -> None:
    first, second = (each.added if is_added else each.current for each in (one, other))
    names = list(dict.fromkeys(column.name for rows in (first, second) for column in rows.columns))
    pairs = {each: (first.column(each), second.column(each)) for each in names}
    drifts = {
        each: None if before is None or after is None or before.kind != after.kind else drift_values(before, after)
        for each, (before, after) in pairs.items()
    }
    if as_json:
        found = {"dataset": name, "compared": "added" if is_added else "current", "drift": drifts}
        context.console.json({**found, "versions": [version_values(one), version_values(other)]})
        return
    what = "rows added by" if is_added else "rows after"
    context.console.text(
        f"{what} versions {one.sequence} and {other.sequence} of {name}: {first.rows:,} and {second.rows:,}"
    )
    context.console.table(
        [_drift_row(each, pairs[each], drifts[each]) for each in names],
        {
            "name": "COLUMN",
            "one": str(one.sequence),
            "other": str(other.sequence),
            "psi": ">PSI",
            "js": ">JS",
            "ks": ">KS",
            "nulls": ">NULLS",
        },
    )


def _drift_row(
    name: str, pair: tuple[ColumnFingerprint | None, ColumnFingerprint | None], drift: dict[str, float | None] | None
) -> dict[str, Any]:
    one, other = draw_together([*pair])
    drift = drift or {}
    return {
        "name": name,
        "one": f"|{one}|",
        "other": f"|{other}|",
        "psi": _measure(drift.get("populationStabilityIndex")),
        "js": _measure(drift.get("jensenShannon")),
        "ks": _measure(drift.get("kolmogorovSmirnov")),
        "nulls": "" if drift.get("nullShareChange") is None else f"{drift['nullShareChange']:+.1%}",
    }


def _measure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _describe_origin(version: VersionFingerprint) -> str:
    match version.origin:
        case FingerprintOrigin.PEER:
            return f"stated by {version.signer}, not checked here"
        case FingerprintOrigin.HERE:
            return "computed here"
    return "signed by this node"


ACTIONS: Final = CommandActions(_LINES, tuple(_EXAMPLES.splitlines()), configure, run)
"""Found by its entry point in the group ``odf_node.actions``."""
