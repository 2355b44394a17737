"""Fingerprints of the versions of a dataset: which are missing, and computing and keeping them.

Source: clauses FP-4 and FP-11 in ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from odf_fingerprints.computing import FingerprintReader
from odf_fingerprints.documents import Fingerprint, RowsFingerprint, decode_rows
from odf_fingerprints.folding import fold_rows
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints, Version
from odf_fingerprints.signing import decode_signed, sign_fingerprint
from odf_node.datasets.chains import load_view
from odf_node.datasets.presence import Presence
from odf_node.errors import ObjectsAbsentError
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord, Origin, StoredBlock
from odf_protocol.block import Block, decode_block
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash

_AT_ONCE = 50  # guess: what is computed is kept after so many versions


@dataclass(frozen=True, slots=True)
class ComparedFingerprint:
    """A fingerprint of another node, and what the rows give.

    Attributes:
        stated: The signed document.
        found: What the rows give; None where they are not here.
    """

    stated: bytes
    found: Fingerprint | None

    @property
    def is_false(self) -> bool:
        """Whether the rows give another one."""
        return self.found is not None and decode_signed(self.stated).fingerprint != self.found


class FingerprintMaker:
    """Computes fingerprints in one home; a context manager, as its reader is."""

    def __init__(self, home: Home) -> None:
        self._home, self._kept, self._reader = home, KeptFingerprints(home.folder), FingerprintReader()

    def __enter__(self) -> "FingerprintMaker":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def make(self, record: DatasetRecord, *, limit: int | None = None) -> int:
        """Compute and keep the fingerprints that are missing, oldest first, and return how many.

        Args:
            record: The dataset.
            limit: How many at most; None: all. No further block is looked at.

        Raises:
            ObjectsAbsentError: Rows are not here by choice, or were not checked; those before them are kept.
            RejectedError, MalformedError, UnsupportedError: A slice cannot be read at bounded cost.
            UnavailableError: The reader was ended from outside, or what was computed before was removed meanwhile.
        """

        def is_present(number: int, block_hash: Multihash) -> bool:
            stored = self._home.store.find_block_by_number(record.id, number)
            return stored is not None and stored.hash == block_hash

        newest = self._kept.find_newest(record.id, is_present)
        before = RowsFingerprint() if newest is None or newest.current is None else decode_rows(newest.current)
        last = None if newest is None else newest.version
        missing = self._home.store.iter_blocks_with_rows(record.id, after=-1 if newest is None else newest.sequence)
        return self._make(record, islice(missing, limit), last, before)

    def _make(
        self, record: DatasetRecord, missing: Iterable[StoredBlock], last: Version | None, current: RowsFingerprint
    ) -> int:
        origin = FingerprintOrigin.OWN if record.origin is Origin.OWN else FingerprintOrigin.HERE
        seed = self._home.keys.get_or_create_node_key().seed
        held: list[KeptFingerprint] = []
        count = 0

        def keep() -> None:
            nonlocal last
            if held:
                self._kept.append(record.id, held, behind=last)
                last = held[-1].version
                held.clear()

        try:
            for stored in missing:
                found = self.compute(record, stored.hash, decode_block(stored.raw, expected_hash=stored.hash))
                current = fold_rows(current, found.added, found.removed)
                document, after = sign_fingerprint(seed, found), encode_canonical(current)
                held.append(KeptFingerprint(stored.sequence_number, stored.hash, origin, document, after))
                count += 1
                if len(held) >= _AT_ONCE:
                    keep()
        finally:
            keep()
        return count

    def compute(self, record: DatasetRecord, block_hash: Multihash, block: Block) -> Fingerprint:
        """Compute the fingerprint of one version; errors as of ``make``."""
        event = block.event
        assert isinstance(event, AddData | ExecuteTransform)
        assert event.new_data is not None
        name = event.new_data.physical_hash
        Presence(self._home.store, self._home.objects).require_checked(record, [name])
        view = load_view(self._home.store, record.id, upto=block.sequence_number)
        path = self._home.objects.get_path(name)
        return self._reader.describe(path, record.id, block, block_hash, vocabulary=view.vocabulary)

    def iter_compared(self, record: DatasetRecord) -> Iterator[ComparedFingerprint]:
        """Compute the fingerprints that other nodes stated of versions of the present history, one after the other.

        Raises:
            ObjectsAbsentError: At the end, where there were some and the rows of none of them are here.
            Others: As ``make``.
        """
        absent: ObjectsAbsentError | None = None
        is_any_here = False
        for each in self._kept.read(record.id):
            if each.origin is not FingerprintOrigin.PEER:
                continue
            stored = self._home.store.find_block_by_number(record.id, each.sequence)
            if stored is None or stored.hash != each.block:
                continue  # of another history, or not here yet
            block, found = decode_block(stored.raw, expected_hash=stored.hash), None
            if not isinstance(block.event, AddData | ExecuteTransform) or block.event.new_data is None:
                continue
            try:
                found = self.compute(record, each.block, block)
                is_any_here = True
            except ObjectsAbsentError as error:
                absent = error
            yield ComparedFingerprint(each.document, found)
        if absent is not None and not is_any_here:
            raise absent
