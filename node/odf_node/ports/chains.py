"""Chains as they are read: which datasets are here, their heads, their blocks, and those that define them."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from odf_node.ports.datasets import BlockRole, DatasetRecord, StoredBlock
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash


class ChainStore(Protocol):
    """Datasets that are here, and their blocks in order; what is read is neither decoded nor judged."""

    def find_dataset(self, dataset_id: DatasetId) -> DatasetRecord | None:
        """Return the record, or None when the dataset is not here."""
        ...

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        """Return all records, ordered by name."""
        ...

    def get_head(self, dataset_id: DatasetId) -> Head:
        """Return the newest block's number and hash."""
        ...

    def get_chain_states(self, dataset_ids: Iterable[DatasetId]) -> dict[DatasetId, bytes]:
        """Return the chain state of each of these datasets that is here, all as of one moment."""
        ...

    def get_chain_state(self, dataset_id: DatasetId) -> tuple[Head, bytes]:
        """Return the head and the chain rules' state after it, read together."""
        ...

    def iter_blocks(self, dataset_id: DatasetId, *, after: int = -1, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield blocks in order of sequence number: those above ``after`` and not above ``upto`` (None: the head).

        The end is fixed by the first step; memory does not grow with the chain, and no lock is held between steps.

        Raises:
            DatasetNotFoundError: The dataset is not here, or was deleted while blocks were read.
            BlockNotFoundError: ``upto`` is above the head.
            HomeCorruptError: A block between is missing.
        """
        ...

    def iter_blocks_backwards(self, dataset_id: DatasetId) -> Iterator[StoredBlock]:
        """Yield blocks from the head to the Seed; otherwise as ``iter_blocks``."""
        ...

    def iter_landmarks(self, dataset_id: DatasetId, *, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield, in order, the blocks that say what is in force after block ``upto`` (None: the head).

        These are all with the role DEFINITION, and the newest of each other role: few, however long the chain is
        (CHAIN-53).
        """
        ...

    def iter_blocks_with_rows(self, dataset_id: DatasetId, *, newest_first: bool = False) -> Iterator[StoredBlock]:
        """Yield the blocks that add rows, otherwise as ``iter_blocks``."""
        ...

    def count_blocks(self, dataset_id: DatasetId, role: BlockRole, *, first: int, last: int) -> int:
        """Count the blocks from ``first`` to ``last`` that have a role, without reading them."""
        ...

    def find_block(self, dataset_id: DatasetId, block_hash: Multihash) -> StoredBlock | None:
        """Return the block of the dataset's chain with this hash, or None."""
        ...

    def find_block_by_number(self, dataset_id: DatasetId, sequence_number: int) -> StoredBlock | None:
        """Return the block of the dataset's chain with this sequence number, or None."""
        ...


class DefinitionStore(Protocol):
    """Blocks that define datasets, of all datasets in one go."""

    def iter_definitions(self) -> Iterator[tuple[DatasetId, bytes]]:
        """Yield each dataset with its blocks of the role DEFINITION, one behind the other, as they arrived.

        In no order; datasets that come or go meanwhile may be missing. Memory does not grow with their number.
        """
        ...
