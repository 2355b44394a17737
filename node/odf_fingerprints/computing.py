"""Computing fingerprints of slices: in the sandbox of readers, whose answer is read as a peer's would be.

Source: clause FP-4 in ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from odf_engines.host.reader_process import ReaderProcess
from odf_fingerprints.documents import MAX_BYTES, OPERATION, Fingerprint, SliceFingerprint, decode_fingerprint
from odf_protocol.block import Block
from odf_protocol.canonical_json import decode_canonical, encode_canonical
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

_PROGRAM = "odf_fingerprints.program"


class FingerprintReader:
    """Describes slices, one after the other, in one process, which ``close`` ends."""

    def __init__(self) -> None:
        self._reader = ReaderProcess(program=_PROGRAM)

    def close(self) -> None:
        """End the process."""
        self._reader.close()

    def describe(
        self,
        path: Path,
        dataset: DatasetId,
        block: Block,
        block_hash: Multihash,
        *,
        vocabulary: Vocabulary,
        shown: Collection[str] = (),
    ) -> Fingerprint:
        """Compute the fingerprint of a version.

        Args:
            path: The slice of the block; its rows were checked.
            dataset: Identity.
            block: The block.
            block_hash: Its hash.
            vocabulary: Names of the system columns there.
            shown: Columns whose frequent values are stated.

        Raises:
            RejectedError, MalformedError, UnsupportedError: The slice cannot be read at bounded cost.
            UnavailableError: The process was ended from outside.
        """
        asked = {
            "vocabulary": vocabulary.columns,
            "system_time_ms": block.system_time.unix_ms,
            "shown": sorted(shown),
        }
        found = self._reader.ask(
            OPERATION, asked, [path], _slice_of, max_bytes=MAX_BYTES, sequence_number=block.sequence_number
        )
        fingerprint = Fingerprint(
            form="odf-node-fingerprint-1",
            dataset=str(dataset),
            sequence=block.sequence_number,
            block=str(block_hash),
            system_time=str(block.system_time),
            operations=found.operations,
            added=found.added,
            removed=found.removed,
        )
        return decode_fingerprint(encode_canonical(fingerprint))


def _slice_of(_result: Any, body: bytes) -> SliceFingerprint:
    try:
        return decode_canonical(body, SliceFingerprint, what="fingerprint", max_bytes=MAX_BYTES)
    except MalformedError as error:
        raise ValueError(str(error)) from error
