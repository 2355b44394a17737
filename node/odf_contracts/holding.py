"""Contracts as what holds an input back: found by the entry point ``contracts`` of the group ``odf_node.holds``.

The newest version that satisfies all contracts of an edge is the end of what a step reads; all before it is read with
it, bad versions that it corrects included. A version counts as held until it was judged.

Source: CONTRACT-8 to CONTRACT-10.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odf_contracts.keeping import ContractStore, KeptContract
from odf_contracts.rules import HoldAction
from odf_contracts.versions import VersionStanding, find_taken, list_standings, list_versions
from odf_node.derive.holding import HoldRule, InputHold
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord

if TYPE_CHECKING:
    from odf_node.engines.sessions import EngineHost

_SHOWN: Final = 3  # guess: sentences of a reason that stay a line or two


def has_contracts(home: Home) -> bool:
    """Say whether there are contracts in a home."""
    return ContractStore(home.folder).has_any()


def find_hold(home: Home, consumer: DatasetRecord, source: DatasetRecord) -> InputHold | None:
    """Say up to which version an input is good for all contracts of the edge, and why not further."""
    contracts = ContractStore(home.folder).list_of(source.id, consumer.id)
    contracts = [each for each in contracts if each.action is not HoldAction.WARN]
    if not contracts:
        return None
    versions = list_versions(home.store, source)
    taken = find_taken(home, consumer, source)
    by_contract = [(each, list_standings(home, each, versions)) for each in contracts]
    for index in range(len(versions) - 1, -1, -1):
        version = versions[index]
        if version.number <= taken or all(standings[index].is_good for _contract, standings in by_contract):
            if index == len(versions) - 1:
                return None
            return _describe(by_contract, source, consumer, upto=versions[index + 1].number - 1)
    return _describe(by_contract, source, consumer, upto=None) if versions else None


def _describe(
    by_contract: Sequence[tuple[KeptContract, list[VersionStanding]]],
    source: DatasetRecord,
    consumer: DatasetRecord,
    *,
    upto: int | None,
) -> InputHold:
    contract, newest = next(
        ((contract, standings[-1]) for contract, standings in by_contract if not standings[-1].is_good),
        (by_contract[0][0], by_contract[0][1][-1]),
    )
    fails = any(each.action is HoldAction.BLOCK and not standings[-1].is_good for each, standings in by_contract)
    number = newest.version.number
    if newest.finding is None:
        return InputHold(
            source.name,
            upto,
            f"block {number} was not judged yet by contract {contract.name}",
            f"odf-node pull {consumer.name}",
        )
    sentences = newest.finding.broken
    more = f", and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
    reason = f"block {number} breaks contract {contract.name}: {'; '.join(sentences[:_SHOWN])}{more}"
    return InputHold(source.name, upto, reason, f"odf-node contract explain {contract.name}", fails)


def _judge(home: Home, engines: "EngineHost", consumer: DatasetRecord, source: DatasetRecord) -> None:
    from odf_contracts.judging import judge_input

    judge_input(home, engines, consumer, source)


RULE: Final = HoldRule(has_contracts, _judge, find_hold)
