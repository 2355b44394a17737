"""Chains: which are here, their heads, their blocks."""

from collections.abc import Iterable, Iterator
from typing import Final

from odf_node.records.datasets import BlockRole, DatasetRecord, StoredBlock
from odf_node.records.errors import BlockNotFoundError, DatasetNotFoundError, HomeCorruptError
from odf_node.store.database import StoreTables
from odf_node.store.rows import (
    DATASET_COLUMNS,
    as_bytes,
    as_int,
    get_dataset_key,
    read_block,
    read_dataset,
)
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

# One read transaction serves one page: a reader that pauses must not keep SQLite from folding its log.
_PAGE_BLOCKS: Final = 1024
_PAGE_BYTES: Final = 4 * 1024 * 1024
_FORWARD: Final = (
    "SELECT sequence_number, hash, raw, signature FROM blocks"
    " WHERE dataset = ? AND sequence_number >= ? ORDER BY sequence_number LIMIT ?"
)
_BACKWARD: Final = (
    "SELECT sequence_number, hash, raw, signature FROM blocks"
    " WHERE dataset = ? AND sequence_number <= ? ORDER BY sequence_number DESC LIMIT ?"
)
# Literally the condition of the index blocks_with_rows.
_WITH_ROWS: Final = (
    "SELECT sequence_number, hash, raw, signature FROM blocks"
    " WHERE dataset = ? AND role >= 3 AND sequence_number > ? ORDER BY sequence_number LIMIT ?"
)
_WITH_ROWS_BACKWARD: Final = (
    "SELECT sequence_number, hash, raw, signature FROM blocks"
    " WHERE dataset = ? AND role >= 3 AND sequence_number < ? ORDER BY sequence_number DESC LIMIT ?"
)
_OF_ROLE: Final = "SELECT sequence_number FROM blocks WHERE dataset = ? AND role = ? AND sequence_number <= ?"
_ANY_OF_ROLE_BEFORE: Final = "SELECT 1 FROM blocks WHERE dataset = ? AND role = ? AND sequence_number < ? LIMIT 1"
_MAX_NUMBER: Final = 2**63 - 1  # what SQLite can hold; strangers name what 64 bits can
_COUNT_OF_ROLE: Final = "SELECT count(*) FROM blocks WHERE dataset = ? AND role = ? AND sequence_number BETWEEN ? AND ?"
_NEWEST: Final = " ORDER BY sequence_number DESC LIMIT 1"
_BY_HASH: Final = (
    "SELECT b.sequence_number, b.hash, b.raw, b.signature FROM blocks b JOIN datasets d ON d.key = b.dataset"
    " WHERE d.id = ? AND b.hash = ?"
)
_BY_NUMBER: Final = (
    "SELECT b.sequence_number, b.hash, b.raw, b.signature FROM blocks b JOIN datasets d ON d.key = b.dataset"
    " WHERE d.id = ? AND b.sequence_number = ?"
)


class ChainTables(StoreTables):
    """Datasets that are here, and their blocks in order; what is read is neither decoded nor judged."""

    def find_dataset(self, dataset_id: DatasetId) -> DatasetRecord | None:
        """Return the record, or None when the dataset is not here."""
        statement = f"SELECT {DATASET_COLUMNS} FROM datasets WHERE id = ?"  # noqa: S608 - a constant
        return self._find(read_dataset, statement, dataset_id.to_bytes())

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        """Return all records, ordered by name."""
        return self._list(read_dataset, f"SELECT {DATASET_COLUMNS} FROM datasets ORDER BY name")  # noqa: S608 - a constant

    def get_head(self, dataset_id: DatasetId) -> Head:
        """Return the newest block's number and hash."""
        return self.get_chain_state(dataset_id)[0]

    def get_chain_states(self, dataset_ids: Iterable[DatasetId]) -> dict[DatasetId, bytes]:
        """Return the chain state of each of these datasets that is here, all as of one moment."""
        with self._database.reading() as connection:
            statement = "SELECT chain_state FROM datasets WHERE id = ?"
            rows = ((each, connection.execute(statement, (each.to_bytes(),)).fetchone()) for each in dataset_ids)
            return {each: as_bytes(row[0]) for each, row in rows if row is not None}

    def get_chain_state(self, dataset_id: DatasetId) -> tuple[Head, bytes]:
        """Return the head and the chain rules' state after it, read together."""
        statement = "SELECT head_sequence_number, head_hash, chain_state FROM datasets WHERE id = ?"
        found = self._find(
            lambda row: (Head(row[0], Multihash.decode(row[1])), as_bytes(row[2])), statement, dataset_id.to_bytes()
        )
        if found is None:
            raise DatasetNotFoundError(dataset_id)
        return found

    def iter_blocks(self, dataset_id: DatasetId, *, after: int = -1, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield blocks in order of sequence number: those above ``after`` and not above ``upto`` (None: the head).

        The end is fixed by the first step; memory does not grow with the chain, and no lock is held between steps.

        Raises:
            DatasetNotFoundError: The dataset is not here, or was deleted while blocks were read.
            BlockNotFoundError: ``upto`` is above the head.
            HomeCorruptError: A block between is missing.
        """
        key, newest = self._find_ends(dataset_id)
        last = newest if upto is None else upto
        if last > newest:
            raise BlockNotFoundError(dataset_id, last)
        following = max(after + 1, 0)
        while following <= last:
            for block in self._read_page(_FORWARD, dataset_id, key, following, last - following + 1):
                self._require(block.sequence_number == following, dataset_id, following)
                yield block
                following += 1

    def iter_blocks_backwards(self, dataset_id: DatasetId) -> Iterator[StoredBlock]:
        """Yield blocks from the head to the Seed; otherwise as ``iter_blocks``."""
        key, following = self._find_ends(dataset_id)
        while following >= 0:
            for block in self._read_page(_BACKWARD, dataset_id, key, following, following + 1):
                self._require(block.sequence_number == following, dataset_id, following)
                yield block
                following -= 1

    def iter_landmarks(self, dataset_id: DatasetId, *, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield, in order, the blocks that say what is in force after block ``upto`` (None: the head).

        These are all with the role DEFINITION, and the newest of each other role: few, however long the chain is
        (CHAIN-53).
        """
        key, newest = self._find_ends(dataset_id)
        last = newest if upto is None else upto
        if last > newest:
            raise BlockNotFoundError(dataset_id, last)
        with self._database.reading() as connection:
            numbers: set[int] = set()
            for role in BlockRole:
                statement = _OF_ROLE if role is BlockRole.DEFINITION else _OF_ROLE + _NEWEST
                numbers.update(as_int(row[0]) for row in connection.execute(statement, (key, role, last)))
        for number in sorted(numbers):
            yield from self._read_page(_FORWARD, dataset_id, key, number, 1)

    def iter_blocks_with_rows(
        self, dataset_id: DatasetId, *, after: int = -1, newest_first: bool = False
    ) -> Iterator[StoredBlock]:
        """Yield the blocks behind ``after`` that add rows, otherwise as ``iter_blocks``."""
        key, newest = self._find_ends(dataset_id)
        statement, following = (_WITH_ROWS_BACKWARD, newest + 1) if newest_first else (_WITH_ROWS, after)
        while page := self._find_page(statement, dataset_id, key, following, _PAGE_BLOCKS):
            for block in page:
                if block.sequence_number <= after:  # newest first: so are all that follow
                    return
                if block.sequence_number <= newest:
                    yield block
            following = page[-1].sequence_number

    def count_blocks(self, dataset_id: DatasetId, role: BlockRole, *, first: int, last: int) -> int:
        """Count the blocks from ``first`` to ``last`` that have a role, without reading them."""
        key, _newest = self._find_ends(dataset_id)
        with self._database.reading() as connection:
            return as_int(connection.execute(_COUNT_OF_ROLE, (key, role, first, last)).fetchone()[0])

    def find_newest_data(self, dataset_id: DatasetId) -> int | None:
        """Return the number of the newest block with rows or a watermark, without reading any; None: there is none."""
        key, newest = self._find_ends(dataset_id)
        roles = (role for role in BlockRole if role > BlockRole.DATA)
        with self._database.reading() as connection:
            found = [connection.execute(_OF_ROLE + _NEWEST, (key, role, newest)).fetchone() for role in roles]
        return max((as_int(row[0]) for row in found if row is not None), default=None)

    def has_data_before(self, dataset_id: DatasetId, sequence_number: int) -> bool:
        """Say whether a block of data stands before another one, without reading any."""
        key, _newest = self._find_ends(dataset_id)
        roles = (role for role in BlockRole if role > BlockRole.DEFINITION)
        with self._database.reading() as connection:
            return any(
                connection.execute(_ANY_OF_ROLE_BEFORE, (key, role, sequence_number)).fetchone() for role in roles
            )

    def find_block(self, dataset_id: DatasetId, block_hash: Multihash) -> StoredBlock | None:
        """Return the block of the dataset's chain with this hash, or None."""
        return self._find(read_block, _BY_HASH, dataset_id.to_bytes(), block_hash.to_bytes())

    def find_block_by_number(self, dataset_id: DatasetId, sequence_number: int) -> StoredBlock | None:
        """Return the block of the dataset's chain with this sequence number, or None."""
        if sequence_number > _MAX_NUMBER:
            return None
        return self._find(read_block, _BY_NUMBER, dataset_id.to_bytes(), sequence_number)

    def _find_ends(self, dataset_id: DatasetId) -> tuple[int, int]:
        with self._database.reading() as connection:
            key = get_dataset_key(connection, dataset_id)
            row = connection.execute("SELECT head_sequence_number FROM datasets WHERE key = ?", (key,)).fetchone()
            return key, as_int(row[0])

    def _read_page(self, statement: str, dataset_id: DatasetId, key: int, start: int, limit: int) -> list[StoredBlock]:
        page = self._find_page(statement, dataset_id, key, start, limit)
        self._require(bool(page), dataset_id, start)
        return page

    def _find_page(self, statement: str, dataset_id: DatasetId, key: int, start: int, limit: int) -> list[StoredBlock]:
        page: list[StoredBlock] = []
        size_bytes = 0
        with self._database.reading() as connection:
            # Keys are never used again, so a dataset that was deleted and came back is not taken for the one begun.
            if connection.execute("SELECT 1 FROM datasets WHERE key = ?", (key,)).fetchone() is None:
                raise DatasetNotFoundError(dataset_id)
            rows = connection.execute(statement, (key, start, min(limit, _PAGE_BLOCKS)))
            for row in rows:
                block = read_block(row)
                page.append(block)
                size_bytes += len(block.raw)
                if size_bytes >= _PAGE_BYTES:
                    break
            rows.close()
        return page

    def _require(self, present: bool, dataset_id: DatasetId, sequence_number: int) -> None:
        if not present:
            raise HomeCorruptError(self._database.path, f"block {sequence_number} of dataset {dataset_id} is missing")
