"""Reading what is known of the versions of a dataset, oldest first.

Source: clauses FP-2 and FP-5 in ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odf_fingerprints.documents import NO_ROWS, Fingerprint, RowsFingerprint, decode_rows
from odf_fingerprints.folding import fold_rows
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints
from odf_fingerprints.signing import decode_signed
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class VersionFingerprint:
    """The fingerprint of a version, and what stands after it.

    Attributes:
        fingerprint: What the version adds and takes away.
        current: What stands after it: all that was added less all that was taken away, up to here. Counts are exact,
            histograms as exact as their bins; ``distinct_values`` is None once rows were taken away.
        origin: Who says so.
        signer: Whose signature stands under it.
    """

    fingerprint: Fingerprint
    current: RowsFingerprint
    origin: FingerprintOrigin
    signer: DidKey

    @property
    def sequence(self) -> int:
        """Number of the block."""
        return self.fingerprint.sequence

    @property
    def added(self) -> RowsFingerprint:
        """Rows that the version adds."""
        return self.fingerprint.added

    @property
    def removed(self) -> RowsFingerprint:
        """Rows that the version takes away."""
        return self.fingerprint.removed


def read_fingerprints(home: Home, dataset: DatasetRecord) -> Sequence[VersionFingerprint]:
    """Read the fingerprints of the versions with rows, oldest first, up to the first version that has none yet.

    Of a version that was computed here and by others, that of here is given.
    """
    kept = KeptFingerprints(home.folder).read(dataset.id)
    of_blocks: dict[tuple[int, Multihash], KeptFingerprint] = {}
    for each in kept:
        known = of_blocks.get((each.sequence, each.block))
        if known is None or known.origin is FingerprintOrigin.PEER:
            of_blocks[each.sequence, each.block] = each
    chosen: list[KeptFingerprint] = []
    for stored in home.store.iter_blocks_with_rows(dataset.id) if kept else ():
        found = of_blocks.get((stored.sequence_number, stored.hash))
        if found is None:
            break
        chosen.append(found)
    return fold_versions(chosen)


def foresee_versions(
    home: Home, dataset: DatasetRecord, fetched: Sequence[KeptFingerprint]
) -> list[VersionFingerprint]:
    """Give the versions that are here, and behind them those that another node states of later blocks.

    Raises:
        RejectedError: What it states of a version that is here is of another block: it has another history.
    """
    known = {stored.sequence_number: stored.hash for stored in home.store.iter_blocks_with_rows(dataset.id)}
    for each in fetched:
        if each.sequence <= dataset.head.sequence_number and known.get(each.sequence) != each.block:
            expected = known.get(each.sequence, "no rows")
            raise RejectedError(
                "FP-13 same-history", sequence_number=each.sequence, expected=expected, found=str(each.block)
            )
    here = read_fingerprints(home, dataset)
    if len(here) < len(known):
        return fold_versions(fetched)
    later = [each for each in fetched if each.sequence > dataset.head.sequence_number]
    return [*here, *fold_versions(later, after=here[-1].current if here else RowsFingerprint())]


def fold_versions(kept: Iterable[KeptFingerprint], *, after: RowsFingerprint = NO_ROWS) -> list[VersionFingerprint]:
    """Give the fingerprints of the versions of one history with what stands after each.

    Args:
        kept: By number, without gaps.
        after: What stands before the first of them.

    Raises:
        RejectedError, MalformedError: One is no signed fingerprint.
    """
    versions: list[VersionFingerprint] = []
    current = after
    for each in kept:
        signed = decode_signed(each.document)
        found = signed.fingerprint
        current = decode_rows(each.current) if each.current else fold_rows(current, found.added, found.removed)
        versions.append(VersionFingerprint(found, current, each.origin, signed.signer))
    return versions
