"""When a subscription that failed is tried again: after a while that grows, and soon when the circumstances changed.

Pure: times are given, nothing is waited for.

Source: clause GOSSIP-56 in ``spec/extensions/gossip.md``.
"""

from dataclasses import dataclass, field
from typing import Final

from odf_node.ports import Head
from odf_protocol.accept_policies import PolicySet
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

SHORTEST_WAIT_S: Final = 2.0  # guess: a round of gossip
FIRST_WAIT_S: Final = 5.0  # guess: whoever announced a head may still be busy
LONGEST_WAIT_S: Final = 3600.0  # guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """All that an acceptance may depend on and that is known here without asking anybody.

    Strangers can change none of it: heads and documents are the dataset key's, statements those of named auditors.

    Attributes:
        head: Id of the newest head that there is news of, None without news.
        statements: Those of auditors that the policies name about the dataset.
        documents: Proofs against it, and settlements.
        inputs: Heads of the other datasets that are subscribed to: some may be its inputs.
        policies: In force; None while they cannot be read.
    """

    head: bytes | None
    statements: frozenset[Multihash] = frozenset()
    documents: int = 0
    inputs: frozenset[tuple[DatasetId, Head]] = frozenset()
    policies: PolicySet | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    circumstances: Circumstances
    count: int
    soon_s: float
    until_s: float


@dataclass(slots=True)
class Attempts:
    """What failed last for each dataset, and until when it is left alone."""

    _failures: dict[DatasetId, _Failure] = field(default_factory=dict)

    def is_due(self, dataset_id: DatasetId, circumstances: Circumstances, now_s: float) -> bool:
        """Say whether an attempt makes sense now; ``now_s`` is of any clock that does not go back."""
        failure = self._failures.get(dataset_id)
        if failure is None:
            return True
        return now_s >= (failure.until_s if failure.circumstances == circumstances else failure.soon_s)

    def fail(self, dataset_id: DatasetId, circumstances: Circumstances, now_s: float) -> float:
        """Note a failure and return how long nothing is tried while nothing changes, in seconds."""
        before = self._failures.get(dataset_id)
        count = before.count + 1 if before is not None and before.circumstances == circumstances else 1
        wait_s: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(count - 1, 12))
        self._failures[dataset_id] = _Failure(circumstances, count, now_s + SHORTEST_WAIT_S, now_s + wait_s)
        return wait_s

    def succeed(self, dataset_id: DatasetId) -> None:
        """Forget the failures of a dataset."""
        self._failures.pop(dataset_id, None)
