"""``odf-node contract suggest`` and ``propose``: contracts from what versions were, and against them.

Source: clauses CONTRACT-13 and CONTRACT-14 in ``spec/plug-ins/contracts.md``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from odf_contracts.contract_text import write_contract
from odf_contracts.judged_files import EXIT_BROKEN, judge_history, read_contract, row_of, show_unchecked
from odf_contracts.judging import VersionJudge, judge_version
from odf_contracts.keeping import ContractStore, KeptContract
from odf_contracts.reading import parse_contract
from odf_contracts.rules import HoldAction
from odf_contracts.suggesting import suggest_contract
from odf_contracts.versions import JudgedVersion, iter_standings, list_versions
from odf_node.cli.context import CommandContext
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.wording import count_of


def suggest(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Learn a contract, and say which versions it would have held."""
    node, record = context.node, get_dataset(context.node.store, arguments.dataset)
    versions = list_versions(node.store, record)
    if arguments.upto is not None:
        versions = [each for each in versions if each.number <= arguments.upto]
    if not versions:
        raise UsageError(f"{record.name} has no version with rows to learn from")
    target = None if arguments.output is None else Path(arguments.output)
    if target is not None and target.exists():
        raise UsageError(f"{target} exists; name a new file")
    with context.console.progress(f"{record.name}: measuring {count_of(len(versions), 'version')}"):
        found = suggest_contract(node.queries, record, versions)
    for version, why in found.suspicious:
        context.console.warn(f"version {version.number} of {version.published} is suspicious: {why}")
    if not found.bounds:
        raise UsageError(f"no version of {record.name} is left to learn from: all of them are suspicious")
    odd = {version.number for version, _why in found.suspicious}
    text = write_contract(found, record.name, [each.number for each in versions if each.number not in odd])
    if target is None:
        context.console.raw(text)
    else:
        target.write_text(text, encoding="utf-8")
    held = _list_held(context, text, record, versions)
    context.console.note(
        f"{count_of(len(found.bounds), 'rule')}, learned from {count_of(len(versions) - len(odd), 'version')}; of all "
        f"{count_of(len(versions), 'version')} it would have held {', '.join(map(str, held)) or 'none'}"
    )
    return 0


def _list_held(
    context: CommandContext, text: str, record: DatasetRecord, versions: Sequence[JudgedVersion]
) -> list[int]:
    (table,) = parse_contract(text.encode(), "suggestion").objects
    kept = KeptContract("", "suggestion", text, table.name, record.id, None, HoldAction.HOLD, context.node.now())
    judge = VersionJudge(context.node.queries, record, table)
    standings = iter_standings(context.node.home, kept, versions, lambda version: judge_version(judge, kept, version))
    return [each.version.number for each in standings if not each.is_good]


def propose(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    """Judge all versions by a contract and by what it would be; exit code 4 where the newest would be held."""
    contract = store.get(arguments.name)
    record = get_dataset(context.node.store, str(contract.dataset))
    proposed = replace(read_contract(context, arguments.file, arguments, record.name), name=contract.name)
    now, then = ([row_of(each) for each in judge_history(context, kept, record)] for kept in (contract, proposed))
    rows = [
        {**after, "now": before["standing"], "proposed": after["standing"]}
        for before, after in zip(now, then, strict=True)
    ]
    show_unchecked(context, proposed)
    columns = {
        "version": ">VERSION",
        "published": "PUBLISHED",
        "now": "NOW",
        "proposed": "PROPOSED",
        "said": "FINDINGS",
    }
    shown = [{**row, "said": "; ".join(row["findings"])} for row in rows]
    empty = f"{record.name} has no version with rows"
    context.console.result(rows, columns, as_json=arguments.output_format == "json", shown=shown, empty=empty)
    return EXIT_BROKEN if rows and rows[-1]["proposed"] == "broken" else 0
