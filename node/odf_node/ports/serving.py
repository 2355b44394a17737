"""What a server of chains asks of the store beside ``MetadataStore``: questions that only strangers raise."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from odf_node.ports.access import ReadGrants
from odf_node.ports.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary


class ServedChains(Protocol):
    """Look-ups by which a node decides what it may show of one dataset."""

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        """Return the record, or None: it is not here, or may not be read; both take the same way.

        Names are compared without regard to case (NAME-3). The record has the name under which the caller knows the
        dataset: one that was brought under a name that is taken here keeps it for all who may not read everything
        (EX-85).
        """
        ...

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object, which the dataset need not have (EX-81)."""
        ...

    def list_readable(self, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
        """Return the records that may be read, by the name under which the caller knows each."""
        ...

    def iter_replay_records(self, dataset_id: DatasetId, *, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
        """Yield sequence number and replay record of blocks above ``after`` and not above ``upto``, in order."""
        ...


class DisputeBoard(Protocol):
    """What is proved against datasets, as far as servers and their callers must know."""

    def require_undisputed(
        self, dataset_id: DatasetId, name: str, hashes: Mapping[int, Multihash] | None = None
    ) -> None:
        """Stop whoever is about to give the newest block of a dataset that is frozen.

        Raises:
            FrozenDatasetError: It is.
        """
        ...

    def documents_about(self, dataset_id: DatasetId) -> tuple[bytes, ...]:
        """Return proofs and settlements as they came, to be passed on."""
        ...


class KeyLogBoard(Protocol):
    """Who speaks for datasets, as far as callers of servers may know."""

    def documents_about(self, dataset_id: DatasetId) -> tuple[bytes, ...]:
        """Return the key log in force, as its events were made, to be passed on."""
        ...


class SliceTrees(Protocol):
    """Trees over slices that are held, by which two nodes find where theirs differ."""

    async def get_summary(self, object_hash: Multihash) -> "TableSummary":
        """Return all hashes of a slice; computed when it is first asked for, possibly for minutes.

        Raises:
            ObjectNotFoundError: It is not here.
            MalformedError, UnsupportedError: It is no slice, or none that has such hashes.
            RejectedError: Reading it takes too much.
            UnavailableError: Too many wait for such work, or somebody ended it.
        """
        ...


class RebuildDesk(Protocol):
    """Where files of derivatives that were dropped are asked back for; never blocks."""

    def request(self, record: DatasetRecord) -> bool:
        """Ask for the files of a dataset, from any thread.

        Returns:
            Whether they are being brought back; False: they cannot be, or could not be a while ago.
        """
        ...
