"""The one transaction in which a chain grows, and what it left.

Source: clauses HOME-10 to HOME-12 in ``spec/home.md``.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from odf_node.ports.access import UNRECORDED, AccessLog
from odf_node.records.commits import Acceptance, Commit, NewBlock, NewDataset
from odf_node.records.datasets import DatasetRecord, Origin, ReplacedHistory, StoredBlock
from odf_node.records.errors import DatasetNotFoundError, HeadMovedError, NameTakenError
from odf_node.records.evidence import HeldAttestation
from odf_node.store.acceptances import insert_acceptance, move_aside, read_acceptance
from odf_node.store.audit_log import insert_sealed
from odf_node.store.database import StoreTables
from odf_node.store.documents import insert_key_events, require_key_events
from odf_node.store.evidence import insert_attestation
from odf_node.store.ingests import insert_answer, replace_merge_state
from odf_node.store.object_names import note_present
from odf_node.store.quarantine import insert_quarantine, insert_settlement
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
from odf_protocol.policy import Trust, weakest
from odf_protocol.timestamp import Timestamp

_BATCH_BLOCKS: Final = 1_000  # guess: below a megabyte of ordinary blocks


_REPLACED_BLOCK: Final = (
    "SELECT sequence_number, hash, raw, signature FROM replaced_blocks WHERE history = ? AND sequence_number = ?"
)


class CommitTables(StoreTables):
    """The one way in which chains grow, and why they were allowed to."""

    access: AccessLog = UNRECORDED
    """Hears of every commit, and of reads."""

    def commit(self, commit: Commit) -> DatasetRecord:
        """Append the blocks, move the head and write everything else the commit carries, or do nothing.

        The caller has made the objects durable and holds a writing lease since before it made them.

        Returns:
            The record after the commit.

        Raises:
            HeadMovedError: The chain's head is not ``expected_head`` (or the dataset to be created exists).
            DatasetNotFoundError: ``expected_head`` is given and the dataset is not here.
            NameTakenError: The new dataset's name belongs to another one.
            SettledError: A row or batch of ``settlement`` does not wait any more.
            KeyInUseError: Somebody else kept an answer under the key of ``answer``.
            KeyLogMovedError: The blocks were judged or signed by keys that changed meanwhile.
            ValueError: The first block's sequence number does not follow the head's.
        """
        note = self.access.note_write(commit)
        with self._database.writing() as connection:
            # Who speaks for the dataset was judged on what was known; a key that changed meanwhile changes that.
            require_key_events(connection, commit.dataset_id, commit.known_key_events)
            if commit.new_dataset is not None:
                key = _insert_dataset(connection, commit, commit.new_dataset)
            else:
                key = _move_head(connection, commit)
            _insert_blocks(connection, key, commit)
            # Two blocks may name equal bytes: equal rows under an equal system time make an equal file.
            connection.executemany(
                "INSERT INTO objects (dataset, hash, absent, brought) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (dataset, hash) DO UPDATE SET"
                " absent = min(absent, excluded.absent), brought = max(brought, excluded.brought)",
                (
                    (key, name.to_bytes(), name in commit.absent, name not in commit.not_brought)
                    for name in commit.objects
                ),
            )
            _insert_the_rest(connection, key, commit)
            row = connection.execute(
                f"SELECT {DATASET_COLUMNS} FROM datasets WHERE key = ?",  # noqa: S608 - a constant
                (key,),
            ).fetchone()
            record = read_dataset(row)
            if note is not None:
                insert_sealed(connection, note(record))
            return record

    def put_acceptance(
        self,
        dataset_id: DatasetId,
        acceptance: Acceptance,
        *,
        rests_on: Trust | None = None,
        attestations: Sequence[HeldAttestation] = (),
        present: Iterable[Multihash] = (),
    ) -> None:
        """Record a later judgement of the same blocks (as a re-execution after the fact).

        Args:
            dataset_id: Whose blocks.
            acceptance: The judgement.
            rests_on: What the dataset as a whole rests on from now; None: on what the judgement found.
            attestations: What this node states about the blocks.
            present: Objects that were absent and are durable by now.

        Raises:
            HeadMovedError: The acceptance is not about the present head.
        """
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            row = connection.execute("SELECT head_hash FROM datasets WHERE key = ?", (key,)).fetchone()
            found = Multihash.decode(as_bytes(row[0]))
            if found != acceptance.head.hash:
                raise HeadMovedError(dataset_id, acceptance.head.hash, found)
            insert_acceptance(connection, key, acceptance, dataset_trust=rests_on or acceptance.trust)
            for attestation in attestations:
                insert_attestation(connection, attestation)
            note_present(connection, key, present)

    def iter_acceptances(self, dataset_id: DatasetId) -> Iterator[Acceptance]:
        """Yield acceptances, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT sequence_number, hash, trust, source_url, accepted_at, detail FROM acceptances"
                " WHERE dataset = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
            return iter([read_acceptance(row) for row in rows])

    def list_replaced_histories(self, dataset_id: DatasetId) -> tuple[ReplacedHistory, ...]:
        """Return the histories that were replaced by others, in the order in which that happened."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, replaced_at, source_url, after, head_sequence_number, head_hash, new_sequence_number,"
                " new_hash FROM replaced_histories WHERE dataset = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return tuple(
            ReplacedHistory(
                id=as_int(row[0]),
                replaced_at=Timestamp.parse(str(row[1])),
                source_url=None if row[2] is None else str(row[2]),
                after=as_int(row[3]),
                head=Head(as_int(row[4]), Multihash.decode(as_bytes(row[5]))),
                replaced_by=Head(as_int(row[6]), Multihash.decode(as_bytes(row[7]))),
            )
            for row in rows
        )

    def iter_replaced_blocks(self, history: ReplacedHistory) -> Iterator[StoredBlock]:
        """Yield the blocks of a replaced history, oldest first."""
        for number in range(history.after + 1, history.head.sequence_number + 1):
            block = self._find(read_block, _REPLACED_BLOCK, history.id, number)
            if block is None:
                return  # the dataset was deleted meanwhile
            yield block

    def fix_block(self, dataset_id: DatasetId, block: NewBlock) -> None:
        """Put back a block of the chain that was lost or damaged; a signature that is here stays.

        Raises:
            ValueError: The bytes do not have the hash.
        """
        if Multihash.of_sha3_256(block.raw) != block.hash:
            raise ValueError(f"the bytes for block {block.sequence_number} are not those of {block.hash}")
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            connection.execute(
                "INSERT INTO blocks (dataset, sequence_number, hash, raw, signature, role) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (dataset, sequence_number) DO UPDATE SET hash = excluded.hash, raw = excluded.raw,"
                " role = excluded.role, signature = coalesce(signature, excluded.signature)",
                (key, block.sequence_number, block.hash.to_bytes(), block.raw, block.signature, block.role),
            )


def _insert_blocks(connection: sqlite3.Connection, key: int, commit: Commit) -> None:
    """Insert the blocks some at a time: a long chain is not in memory, here neither."""
    blocks, expected = iter(commit.blocks), commit.blocks[0].sequence_number
    while batch := list(islice(blocks, _BATCH_BLOCKS)):
        numbers = [block.sequence_number for block in batch]
        if numbers != list(range(expected, expected + len(batch))):
            raise ValueError(f"expected blocks from {expected} without gaps, found {numbers[:5]}")
        expected += len(batch)
        connection.executemany(
            "INSERT INTO blocks (dataset, sequence_number, hash, raw, signature, role) VALUES (?, ?, ?, ?, ?, ?)",
            ((key, b.sequence_number, b.hash.to_bytes(), b.raw, b.signature, b.role) for b in batch),
        )
        connection.executemany(
            "INSERT INTO replay_records (dataset, sequence_number, raw) VALUES (?, ?, ?)",
            ((key, b.sequence_number, b.step_record) for b in batch if b.step_record is not None),
        )


def _insert_the_rest(connection: sqlite3.Connection, key: int, commit: Commit) -> None:
    head = commit.new_head
    if commit.signed_head is not None:
        connection.execute(
            "INSERT INTO signed_heads (dataset, sequence_number, hash, raw) VALUES (?, ?, ?, ?)",
            (key, head.sequence_number, head.hash.to_bytes(), commit.signed_head),
        )
    if commit.acceptance is not None:
        row = connection.execute("SELECT trust FROM datasets WHERE key = ?", (key,)).fetchone()
        # New blocks on good grounds do not better those that came before (ACCEPT-5).
        trust = weakest((Trust(str(row[0])), commit.acceptance.trust))
        insert_acceptance(connection, key, commit.acceptance, dataset_trust=trust)
    if commit.acceptance is not None:
        insert_key_events(connection, commit.dataset_id, commit.key_events, commit.acceptance.accepted_at)
    for attestation in commit.attestations:
        insert_attestation(connection, attestation)
    if commit.quarantine is not None:
        insert_quarantine(connection, key, commit.quarantine)
    if commit.settlement is not None:
        insert_settlement(connection, key, commit.settlement, head.sequence_number)
    if commit.fetched_place is not None:
        connection.execute(
            "INSERT OR REPLACE INTO fetched_places (dataset, state, place) VALUES (?, ?, ?)",
            (key, commit.fetched_place.state, commit.fetched_place.place),
        )
    if commit.answer is not None:
        insert_answer(connection, key, commit.answer)
    if commit.merge_state is not None:
        replace_merge_state(connection, key, head.hash, commit.merge_state)


def _insert_dataset(connection: sqlite3.Connection, commit: Commit, new: NewDataset) -> int:
    found = connection.execute(
        "SELECT head_hash FROM datasets WHERE id = ?", (commit.dataset_id.to_bytes(),)
    ).fetchone()
    if found is not None:
        raise HeadMovedError(commit.dataset_id, None, Multihash.decode(as_bytes(found[0])))
    holder = connection.execute("SELECT id FROM datasets WHERE name = ?", (new.name,)).fetchone()
    if holder is not None:
        raise NameTakenError(new.name, DatasetId.decode(as_bytes(holder[0])))
    trust = Trust.OWN if commit.acceptance is None else commit.acceptance.trust
    head = commit.new_head
    cursor = connection.execute(
        "INSERT INTO datasets (id, name, kind, origin, origin_url, trust, pinned_key, published, created_at,"
        " head_sequence_number, head_hash, chain_state, asked_name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            commit.dataset_id.to_bytes(),
            new.name,
            new.kind.name,
            new.origin.value,
            new.origin_url,
            trust.value,
            None if new.pinned_key is None else new.pinned_key.to_bytes(),
            int(new.published),
            str(new.created_at),
            head.sequence_number,
            head.hash.to_bytes(),
            commit.chain_state,
            new.asked_name,
        ),
    )
    return as_int(cursor.lastrowid)


def _move_head(connection: sqlite3.Connection, commit: Commit) -> int:
    row = connection.execute(
        "SELECT key, head_sequence_number, head_hash, origin FROM datasets WHERE id = ?",
        (commit.dataset_id.to_bytes(),),
    ).fetchone()
    if row is None:
        raise DatasetNotFoundError(commit.dataset_id)
    key, number, found = as_int(row[0]), as_int(row[1]), Multihash.decode(as_bytes(row[2]))
    if found != commit.expected_head:
        raise HeadMovedError(commit.dataset_id, commit.expected_head, found)
    if row[3] == Origin.PULLED.value and commit.acceptance is None:
        raise ValueError("blocks of others are committed with an acceptance (HOME-17)")
    if commit.replaces_after is not None:
        if row[3] != Origin.PULLED.value or not 0 <= commit.replaces_after < number:
            raise ValueError("only blocks of others, behind their first one, are replaced")
        move_aside(connection, key, Head(number, found), commit)
        number = commit.replaces_after
    if commit.blocks[0].sequence_number != number + 1:
        raise ValueError(f"expected block {number + 1} to follow the head, found {commit.blocks[0].sequence_number}")
    head = commit.new_head
    connection.execute(
        "UPDATE datasets SET head_sequence_number = ?, head_hash = ?, chain_state = ? WHERE key = ?",
        (head.sequence_number, head.hash.to_bytes(), commit.chain_state, key),
    )
    return key
