"""``odf-node contract``: what derivatives of this node may read of a dataset, by contracts.

Source: clauses CONTRACT-7 to CONTRACT-14 in ``spec/plug-ins/contracts.md``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from odf_contracts.judged_files import EXIT_BROKEN, judge_history, read_contract, row_of, show_unchecked
from odf_contracts.judging import VersionJudge
from odf_contracts.keeping import MAX_REASON, ContractPass, ContractStore, KeptContract, sign_pass
from odf_contracts.learning_actions import propose, suggest
from odf_contracts.rules import HoldAction
from odf_contracts.versions import VersionStanding, list_standings, list_versions
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format, whole_number
from odf_node.cli.rows import write_rows
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.records.datasets import Origin
from odf_node.wording import count_of
from odf_protocol.enums import DatasetKind

TOPIC: Final = "check and trust"
HELP: Final = "hold versions of inputs back that break a contract"
EXAMPLES: Final = """\
contract add sales.odcs.yaml --on sales
contract list
contract check sales
contract suggest sales --output sales.odcs.yaml
contract propose sales changed.odcs.yaml
contract explain sales 17
contract pass sales 17 --reason 'a strike: three days are missing'
contract remove sales
"""

_ACTIONS: Final = {
    "add": "keep what a contract file says of a dataset, for what derivatives read of it",
    "list": "list the contracts and how the newest version stands",
    "check": "judge all versions of the dataset, or those of a file that is not added",
    "suggest": "learn a contract from the versions of a dataset",
    "propose": "show what a changed file would have held of the versions of a contract's dataset",
    "explain": "show what a version breaks, which block brought it, and rows that show it",
    "pass": "let one version pass, signed, with a reason",
    "remove": "forget a contract",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(parser, _ACTIONS)
    actions["add"].add_argument("file", metavar="FILE", help="a contract of the Open Data Contract Standard, version 3")
    actions["check"].add_argument("name", metavar="NAME|FILE", help="of a contract, or a file")
    for name in ("add", "check"):
        actions[name].add_argument(
            "--on", metavar="DATASET", help="what it is about (default: what its table is called)"
        )
        actions[name].add_argument("--table", metavar="NAME", help="which table of the file (default: the only one)")
    actions["add"].add_argument("--name", metavar="NAME", help="what it is called here (default: like the file)")
    actions["add"].add_argument("--for", dest="consumer", metavar="DERIVATIVE", help="only what this one reads")
    actions["add"].add_argument(
        "--action",
        dest="on_broken",
        choices=[each.value for each in HoldAction],
        help="of a version that breaks it: derivatives keep the last good one (hold), and their pull fails (block), or "
        "it is only said (warn) (default: what the file says, else hold)",
    )
    actions["suggest"].add_argument("dataset", metavar="DATASET", help="name or identity")
    actions["suggest"].add_argument(
        "--upto", type=whole_number(0), metavar="VERSION", help="learn from no later version (default: the newest)"
    )
    actions["suggest"].add_argument("--output", metavar="FILE", help="write the contract there (default: show it)")
    actions["propose"].add_argument("name", metavar="NAME", help="of a contract")
    actions["propose"].add_argument("file", metavar="FILE", help="the contract as it would be")
    actions["propose"].add_argument(
        "--table", metavar="NAME", help="which table of the file (default: that of the contract)"
    )
    for name in ("explain", "pass", "remove"):
        actions[name].add_argument("name", metavar="NAME", help="of a contract")
    actions["explain"].add_argument(
        "version", nargs="?", type=whole_number(0), metavar="VERSION", help="a block's number (default: the newest)"
    )
    actions["explain"].add_argument("--rows", type=whole_number(0), default=5, metavar="N", help="shown of each rule")
    actions["pass"].add_argument("version", type=whole_number(0), metavar="VERSION", help="a block's number")
    actions["pass"].add_argument("--reason", required=True, metavar="TEXT", help="why it may pass")
    for name in ("list", "check", "propose", "explain"):
        add_output_format(actions[name], "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    context.load_settings()
    store = ContractStore(context.node.home.folder)
    match arguments.action:
        case "add":
            return _add(context, store, arguments)
        case "list":
            return _list(context, store, arguments)
        case "check":
            return _check(context, store, arguments)
        case "suggest":
            return suggest(context, arguments)
        case "propose":
            return propose(context, store, arguments)
        case "explain":
            return _explain(context, store, arguments)
        case "pass":
            return _pass(context, store, arguments)
    store.remove(arguments.name)
    context.node.record("contract remove", arguments.name)
    context.console.text(f"{arguments.name}: removed")
    return 0


def _add(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    contract = _read_file(context, arguments)
    name = arguments.name or Path(arguments.file).name.split(".")[0]
    consumer = None
    if arguments.consumer is not None:
        found = get_dataset(context.node.store, arguments.consumer)
        if found.kind is not DatasetKind.DERIVATIVE or found.origin is not Origin.OWN:
            raise UsageError(f"'{found.name}' is no derivative of this node, so nothing is held back from it")
        consumer = found.id
    contract = replace(contract, name=name, consumer=consumer)
    if arguments.on_broken is not None:
        contract = replace(contract, action=HoldAction(arguments.on_broken))
    known = store.find(name)
    if known is not None:
        contract = replace(contract, passes=known.passes)
    store.put(contract)
    context.node.record("contract add", name, str(contract.dataset))
    said = "renewed" if known is not None else "added"
    context.console.text(f"{name}: {said}; {count_of(len(contract.rules.rules), 'rule')} checked, {contract.action}")
    show_unchecked(context, contract)
    return 0


def _read_file(context: CommandContext, arguments: argparse.Namespace) -> KeptContract:
    """Read a contract file, and find the dataset and the table that are meant.

    Raises:
        ManifestError: It cannot be followed, or names columns that the dataset does not have.
        UsageError: It is not clear which table or dataset is meant.
    """
    return read_contract(context, arguments.file if arguments.action == "add" else arguments.name, arguments)


def _list(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    node = context.node
    rows = []
    for each in store.list_contracts():
        record = node.store.find_dataset(each.dataset)
        consumer = None if each.consumer is None else node.store.find_dataset(each.consumer)
        versions = [] if record is None else list_versions(node.store, record)
        newest = list_standings(node.home, each, versions)[-1:]
        rows.append(
            {
                "name": each.name,
                "dataset": str(each.dataset) if record is None else record.name,
                "for": "all derivatives" if each.consumer is None else getattr(consumer, "name", str(each.consumer)),
                "action": each.action.value,
                "rules": len(each.rules.rules),
                "newest": newest[0].version.number if newest else None,
                "standing": _describe_standing(newest[0]) if newest else "no rows yet",
            }
        )
    columns = {"name": "NAME", "dataset": "DATASET", "for": "FOR", "action": "ACTION", "rules": ">RULES"}
    columns |= {"newest": ">NEWEST", "standing": "STANDING"}
    empty = "this node has no contracts; 'odf-node contract add FILE' adds one"
    context.console.result(rows, columns, as_json=arguments.output_format == "json", empty=empty)
    return 0


def _describe_standing(standing: VersionStanding) -> str:
    if standing.is_passed:
        return "let pass"
    if standing.finding is None:
        return "not judged yet"
    if standing.finding.broken:
        return f"broken: {'; '.join(standing.finding.broken)}"
    return f"good, but {'; '.join(standing.finding.warned)}" if standing.finding.warned else "good"


def _check(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    """Judge all versions; exit code 4 where the newest is broken."""
    is_file = Path(arguments.name).is_file()
    contract = _read_file(context, arguments) if is_file else store.get(arguments.name)
    record = get_dataset(context.node.store, str(contract.dataset))
    rows = [row_of(standing) for standing in judge_history(context, contract, record)]
    if is_file:
        show_unchecked(context, contract)
    columns = {"version": ">VERSION", "published": "PUBLISHED", "standing": "STANDING", "said": "FINDINGS"}
    shown = [{**row, "said": "; ".join(row["findings"])} for row in rows]
    empty = f"{record.name} has no version with rows"
    context.console.result(rows, columns, as_json=arguments.output_format == "json", shown=shown, empty=empty)
    return EXIT_BROKEN if rows and rows[-1]["standing"] == "broken" else 0


def _explain(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    contract = store.get(arguments.name)
    node, record = context.node, get_dataset(context.node.store, str(contract.dataset))
    versions = list_versions(node.store, record)
    standings = list_standings(node.home, contract, versions)
    wanted = versions[-1].number if arguments.version is None and versions else arguments.version
    index = next((index for index, each in enumerate(versions) if each.number == wanted), None)
    if index is None:
        numbers = ", ".join(str(each.number) for each in versions[-10:])
        raise UsageError(f"{record.name} has no version with rows of that number; newest are {numbers or 'none'}")
    version = standings[index].version
    judge = VersionJudge(node.queries, record, contract.rules)
    with context.console.progress(f"{record.name}: judging version {version.number}"):
        findings = [each for each in judge.judge(version) if each.is_broken]
        samples = [judge.sample(each, version, rows=arguments.rows) for each in findings]
    whose = f"from {record.origin_url}" if record.origin_url else "made here"
    if arguments.output_format == "json":
        context.console.json(
            {
                "contract": contract.name,
                "dataset": record.name,
                "version": version.number,
                "block": str(version.block),
                "published": str(version.published),
                "broken": [
                    {
                        "line": each.rule.line,
                        "path": each.rule.path,
                        "onlyWarns": each.rule.only_warns,
                        "value": each.value,
                        "says": each.describe(),
                        "rows": [] if sample is None else _plain(sample.to_pylist()),
                    }
                    for each, sample in zip(findings, samples, strict=True)
                ],
            }
        )
        return 0
    before = "the first with rows" if version.before is None else f"compared with version {version.before}"
    context.console.text(
        f"{record.name} ({whose}), version {version.number} of {version.published} ({version.block.short}), {before}"
    )
    if not findings:
        context.console.text(f"it satisfies contract {contract.name}")
    for each, sample in zip(findings, samples, strict=True):
        warns = "warns: " if each.rule.only_warns else ""
        context.console.text(f"{warns}{each.describe()} ({contract.source}:{each.rule.line})")
        if sample is not None and sample.num_rows:
            write_rows(context.console, sample, "table")
    return 0


def _plain(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {key: value if isinstance(value, int | float | str | None) else str(value) for key, value in row.items()}
        for row in rows
    ]


def _pass(context: CommandContext, store: ContractStore, arguments: argparse.Namespace) -> int:
    contract = store.get(arguments.name)
    node, record = context.node, get_dataset(context.node.store, str(contract.dataset))
    reason = arguments.reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        raise UsageError(f"a reason has 1 to {MAX_REASON:,} characters")
    version = next((each for each in list_versions(node.store, record) if each.number == arguments.version), None)
    if version is None:
        raise UsageError(f"{record.name} has no version with rows of the number {arguments.version}")
    statement = ContractPass(
        contract.name, contract.digest, str(record.id), str(version.block), version.number, reason, str(node.now())
    )
    store.put(replace(contract, passes=(*contract.passes, sign_pass(node.home, statement))))
    node.record("contract pass", contract.name, f"version {version.number} of {record.name}: {reason}")
    context.console.text(f"version {version.number} of {record.name} may pass contract {contract.name}")
    return 0
