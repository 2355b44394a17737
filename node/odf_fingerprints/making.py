"""Fingerprints of the versions of a dataset: which are missing, and computing and keeping them.

Source: clauses FP-4 and FP-11 in ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odf_fingerprints.computing import FingerprintReader
from odf_fingerprints.documents import Fingerprint, RowsFingerprint, decode_rows
from odf_fingerprints.folding import fold_rows
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints
from odf_fingerprints.signing import decode_signed, sign_fingerprint
from odf_node.datasets.chains import load_view
from odf_node.datasets.presence import Presence
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.block import Block, decode_block
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash

_AT_ONCE = 50  # guess: what is computed is kept after so many versions


@dataclass(frozen=True, slots=True)
class FalseFingerprint:
    """A fingerprint of another node that the rows do not give.

    Attributes:
        stated: The signed document.
        found: What the rows give.
    """

    stated: bytes
    found: Fingerprint


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
            limit: How many at most; None: all.

        Raises:
            ObjectsAbsentError: Rows are not here by choice, or were not checked; those before them are kept.
            RejectedError, MalformedError, UnsupportedError: A slice cannot be read at bounded cost.
        """
        computed = self._kept.list_computed(record.id)
        last: tuple[int, Multihash] | None = None
        missing: list[tuple[int, Multihash, Block]] = []
        for number, block_hash, block in self._iter_blocks(record):
            if not missing and (number, block_hash) in computed:
                last = number, block_hash
            else:
                missing.append((number, block_hash, block))
        if not missing:
            return 0
        current = None if last is None else self._kept.find_current(record.id, *last)
        before = RowsFingerprint() if current is None else decode_rows(current)
        return self._make(record, missing[:limit], before)

    def _make(
        self, record: DatasetRecord, missing: Sequence[tuple[int, Multihash, Block]], current: RowsFingerprint
    ) -> int:
        origin = FingerprintOrigin.OWN if record.origin is Origin.OWN else FingerprintOrigin.HERE
        seed = self._home.keys.get_or_create_node_key().seed
        held: list[KeptFingerprint] = []
        try:
            for number, block_hash, block in missing:
                found = self.compute(record, block_hash, block)
                current = fold_rows(current, found.added, found.removed)
                document = sign_fingerprint(seed, found)
                held.append(KeptFingerprint(number, block_hash, origin, document, encode_canonical(current)))
                if len(held) >= _AT_ONCE:
                    self._kept.put(record.id, held)
                    held.clear()
        finally:
            if held:
                self._kept.put(record.id, held)
        return len(missing)

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

    def check(self, record: DatasetRecord) -> tuple[int, list[FalseFingerprint]]:
        """Compute the fingerprints that other nodes stated of rows that are here.

        Returns:
            How many were compared, and those that differ.

        Raises:
            As ``make``.
        """
        stated = [each for each in self._kept.read(record.id) if each.origin is FingerprintOrigin.PEER]
        blocks = {(number, block_hash): block for number, block_hash, block in self._iter_blocks(record)}
        checked, false = 0, []
        for each in stated:
            block = blocks.get((each.sequence, each.block))
            if block is None:
                continue  # of another history, or not here yet
            found = self.compute(record, each.block, block)
            checked += 1
            if decode_signed(each.document).fingerprint != found:
                false.append(FalseFingerprint(each.document, found))
        return checked, false

    def _iter_blocks(self, record: DatasetRecord) -> Iterator[tuple[int, Multihash, Block]]:
        for stored in self._home.store.iter_blocks_with_rows(record.id):
            yield stored.sequence_number, stored.hash, decode_block(stored.raw, expected_hash=stored.hash)
