"""What a server of chains asks for beside chains and files."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.exchange.messages import DatasetTexts
    from odf_protocol.hashing.v1 import TableSummary


class DisputeRegistry(Protocol):
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


class KeyLogRegistry(Protocol):
    """Who speaks for datasets, as far as callers of servers may know."""

    def documents_about(self, dataset_id: DatasetId) -> tuple[bytes, ...]:
        """Return the key log in force, as its events were made, to be passed on."""
        ...


class DatasetSearch(Protocol):
    """Finds datasets by words in what they say of themselves (EX-89)."""

    def find_page(
        self, words: Sequence[str], records: Iterable[DatasetRecord], *, after: str
    ) -> tuple[list[tuple[DatasetRecord, "DatasetTexts"]], str | None]:
        """Find the datasets, of those alone that are given, in which every word occurs, by name, a page of them.

        Returns:
            Each with its texts, and behind which name the search goes on; None: nowhere.

        Raises:
            MalformedError: Words as nobody takes them.
        """
        ...


class SliceTrees(Protocol):
    """Trees over slices that are held, by which two nodes find where theirs differ."""

    async def get_summary(self, object_hash: Multihash, caller: str) -> "TableSummary":
        """Return all hashes of a slice; computed when it is first asked for, possibly for minutes.

        Args:
            object_hash: Of the slice.
            caller: Whose turn is waited for, where others wait.

        Raises:
            ObjectNotFoundError: It is not here.
            MalformedError, UnsupportedError: It is no slice, or none that has such hashes.
            RejectedError: Reading it takes too much.
            UnavailableError: Too many wait for such work, or somebody ended it.
        """
        ...


class RebuildRequests(Protocol):
    """Where files of derivatives that were dropped are asked back for; never blocks."""

    def request(self, record: DatasetRecord) -> bool:
        """Ask for the files of a dataset, from any thread.

        Returns:
            Whether they are being brought back; False: they cannot be, or could not be a while ago.
        """
        ...
