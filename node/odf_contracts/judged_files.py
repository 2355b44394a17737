"""What actions of ``odf-node contract`` share: contract files on the command line, and histories that are judged."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from odf_contracts.judging import VersionJudge, judge_version
from odf_contracts.keeping import KeptContract, NotedFinding
from odf_contracts.reading import parse_contract
from odf_contracts.rules import ContractObject, DataContract, HoldAction
from odf_contracts.versions import JudgedVersion, VersionStanding, iter_standings, list_versions
from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import read_input
from odf_node.cli.run import EXIT_CODES
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.wording import count_of
from odf_protocol.errors import RejectedError
from odf_protocol.manifest.errors import ManifestError, find_nearest

EXIT_BROKEN: Final = EXIT_CODES[RejectedError]


def read_contract(
    context: CommandContext, file: str, arguments: argparse.Namespace, dataset: str | None = None
) -> KeptContract:
    """Read a contract file, and find the dataset and the table that are meant.

    Raises:
        ManifestError: It cannot be followed, or names columns that the dataset does not have.
        UsageError: It is not clear which table or dataset is meant.
    """
    raw = read_input(file)
    parsed = parse_contract(raw, file)
    dataset = dataset or getattr(arguments, "on", None)
    table = _choose_table(parsed, arguments.table, dataset, file)
    record = get_dataset(context.node.store, dataset or table.physical_name or table.name)
    _require_columns(context, table, record, file)
    return KeptContract(
        "",
        file,
        raw.decode("utf-8-sig"),
        table.name,
        record.id,
        None,
        parsed.action or HoldAction.HOLD,
        context.node.now(),
    )


def _choose_table(parsed: DataContract, named: str | None, dataset: str | None, file: str) -> ContractObject:
    names = [each.name for each in parsed.objects]
    wanted = named if named is not None else dataset
    fits = [each for each in parsed.objects if wanted in {each.name, each.physical_name}]
    if fits:
        return fits[0]
    if named is None and len(parsed.objects) == 1:
        return parsed.objects[0]
    nearest = find_nearest(wanted, names) if wanted else None
    hint = f"did you mean {nearest}?" if nearest else "--table names one of " + ", ".join(names)
    raise UsageError(f"{file} has {count_of(len(names), 'table')}, none called {wanted!r}; {hint}")


def _require_columns(context: CommandContext, table: ContractObject, record: DatasetRecord, file: str) -> None:
    schema = load_view(context.node.store, record.id).schema
    if schema is None:
        return  # no rows so far: the first version that has some is judged by it
    names = [each.name for each in schema.fields]
    for each in table.columns:
        if each.column not in names:
            raise ManifestError(
                file,
                each.line,
                1,
                path=f"{table.name}.{each.name}",
                expected=f"a column of {record.name} ({', '.join(names)})",
                found=each.column,
                nearest=find_nearest(each.column, names),
            )


def show_unchecked(context: CommandContext, contract: KeptContract) -> None:
    """Name what a contract says and nothing here checks, a line each."""
    for each in contract.rules.unchecked:
        context.console.text(f"{contract.source}:{each.line}: {each.path}: not checked here: {each.reason}")


def row_of(standing: VersionStanding) -> dict[str, Any]:
    """Give how a version stands as plain values."""
    return {
        "version": standing.version.number,
        "published": str(standing.version.published),
        "standing": "passed" if standing.is_passed else "good" if standing.is_good else "broken",
        "findings": [] if standing.finding is None else [*standing.finding.broken, *standing.finding.warned],
    }


def judge_history(context: CommandContext, contract: KeptContract, record: DatasetRecord) -> Iterator[VersionStanding]:
    """Judge every version of a dataset that was not judged before, oldest first."""
    node = context.node
    versions = list_versions(node.store, record)
    judge = VersionJudge(node.queries, record, contract.rules)
    places = {each.number: place for place, each in enumerate(versions, start=1)}

    def judge_one(version: JudgedVersion) -> NotedFinding:
        with context.console.progress(f"{record.name}: version {places[version.number]} of {len(versions)}"):
            return judge_version(judge, contract, version)

    yield from iter_standings(node.home, contract, versions, judge_one)
