"""What ``odf-node status`` says of contracts that hold nothing: newest versions that break what warns (CONTRACT-9).

``REPORT`` is found by its entry point in the group ``odf_node.status``.
"""

from collections.abc import Iterator
from typing import Final

from odf_contracts.keeping import ContractStore
from odf_contracts.rules import HoldAction
from odf_contracts.versions import list_standings, list_versions
from odf_node.home import Home
from odf_node.upkeep.status_findings import Condition, StatusFinding, StatusReport


def iter_warnings(home: Home) -> Iterator[StatusFinding]:
    """Yield what the newest version of each dataset breaks and is not held for."""
    for contract in ContractStore(home.folder).list_contracts():
        record = home.store.find_dataset(contract.dataset)
        if record is None:
            yield StatusFinding(
                Condition.WAITING,
                None,
                f"contract {contract.name} is about {contract.dataset}, which is not here",
                f"odf-node contract remove {contract.name}",
            )
            continue
        newest = [None, *list_standings(home, contract, list_versions(home.store, record))][-1]
        if newest is None or newest.finding is None or newest.is_passed:
            continue
        warns = contract.action is HoldAction.WARN
        sentences = [*(newest.finding.broken if warns else ()), *newest.finding.warned]
        if sentences:
            what = f"block {newest.version.number} breaks contract {contract.name}, which warns: {'; '.join(sentences)}"
            yield StatusFinding(Condition.WAITING, record.name, what, f"odf-node contract explain {contract.name}")


REPORT: Final = StatusReport(iter_warnings)
