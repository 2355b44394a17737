"""What every ``MetadataStore`` must do; an adapter's test subclasses this and provides ``make_store``."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from odf_node.ports import (
    AccessToken,
    Attestation,
    AuditEntry,
    BlockNotFoundError,
    BlockRole,
    DatasetNotFoundError,
    DocumentKind,
    Head,
    HeadMovedError,
    KeyLogChange,
    KeyLogMovedError,
    MetadataStore,
    NameTakenError,
    NewBlock,
    Origin,
    Outcome,
    Peer,
    PeerKeyChangedError,
    QuarantineFile,
    Remote,
    RemoteDirection,
    ReplayRecord,
    SignedHead,
    StoredBlock,
)
from odf_protocol.did import DidKey
from odf_protocol.events import DatasetKind
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from support.store_values import (
    LATER,
    NOON,
    acceptance,
    blocks,
    creation,
    dataset_id,
    did_key,
    growth,
    object_hash,
    pulled_creation,
)


def _stored(block: NewBlock) -> StoredBlock:
    return StoredBlock(block.sequence_number, block.hash, block.raw, block.signature)


def _quarantine(number: int | None = 1) -> QuarantineFile:
    return QuarantineFile(
        dataset_id=dataset_id(),
        sequence_number=number,
        object_hash=object_hash(7),
        row_count=3,
        source="file:///rows.csv",
        created_at=LATER,
    )


def _attestation(raw: bytes, first: int = 2, last: int = 5) -> Attestation:
    return Attestation(
        id=Multihash.of_sha3_256(raw),
        dataset_id=dataset_id(),
        first_sequence_number=first,
        last_sequence_number=last,
        last_block_hash=object_hash(5),
        attester=did_key(),
        raw=raw,
        received_at=NOON,
    )


class MetadataStoreSuite(ABC):
    @abstractmethod
    def make_store(self) -> MetadataStore:
        """Open the store of this test; a second call opens the same one again, as another process would."""

    @pytest.fixture
    def store(self) -> Iterator[MetadataStore]:
        store = self.make_store()
        yield store
        store.close()

    # Datasets and commits

    def test_empty_store_finds_nothing(self, store: MetadataStore) -> None:
        assert store.list_datasets() == ()
        assert store.find_dataset(dataset_id()) is None
        assert store.find_dataset_by_name("x") is None
        assert store.find_block(dataset_id(), object_hash(1)) is None
        assert store.find_signed_head(dataset_id()) is None
        assert list(store.iter_audit(limit=9)) == []
        assert store.list_referenced_objects() == frozenset()

    def test_created_own_dataset_is_found_by_id_and_name(self, store: MetadataStore) -> None:
        commit = creation(count=2)
        record = store.commit(commit)
        assert record == store.find_dataset(dataset_id()) == store.find_dataset_by_name("dataset.1")
        assert (record.origin, record.trust, record.origin_url) == (Origin.OWN, Trust.OWN, None)
        assert (record.kind, record.published, record.created_at) == (DatasetKind.ROOT, True, NOON)
        assert record.head == commit.new_head == store.get_head(dataset_id())
        assert store.get_chain_state(dataset_id()) == (commit.new_head, b"state after creation")

    def test_pulled_dataset_shows_origin_trust_and_pinned_key(self, store: MetadataStore) -> None:
        commit = pulled_creation()
        record = store.commit(commit)
        assert (record.origin, record.origin_url) == (Origin.PULLED, "https://peer.example/d")
        assert (record.trust, record.pinned_key) == (Trust.REEXECUTED, did_key())
        assert list(store.iter_acceptances(dataset_id())) == [commit.acceptance]
        assert store.find_signed_head(dataset_id()) == SignedHead(
            dataset_id(), commit.new_head, b"signed head document"
        )

    def test_datasets_are_listed_by_name(self, store: MetadataStore) -> None:
        store.commit(creation(1, name="b"))
        store.commit(creation(2, name="a"))
        assert [record.name for record in store.list_datasets()] == ["a", "b"]

    def test_blocks_come_back_as_the_bytes_they_were(self, store: MetadataStore) -> None:
        commit = creation(count=7)
        store.commit(commit)
        assert list(store.iter_blocks(dataset_id())) == [_stored(block) for block in commit.blocks]
        assert list(store.iter_blocks_backwards(dataset_id())) == [_stored(b) for b in reversed(commit.blocks)]

    def test_part_of_a_chain_is_read_by_its_ends(self, store: MetadataStore) -> None:
        store.commit(creation(count=10))
        assert [b.sequence_number for b in store.iter_blocks(dataset_id(), after=3, upto=6)] == [4, 5, 6]
        assert list(store.iter_blocks(dataset_id(), after=9)) == []

    def test_reading_above_the_head_is_refused(self, store: MetadataStore) -> None:
        store.commit(creation(count=2))
        with pytest.raises(BlockNotFoundError):
            list(store.iter_blocks(dataset_id(), upto=2))

    def test_long_chain_is_read_whole_and_in_order(self, store: MetadataStore) -> None:
        commit = creation(count=3000)
        store.commit(commit)
        assert [b.hash for b in store.iter_blocks(dataset_id())] == [b.hash for b in commit.blocks]
        assert [b.sequence_number for b in store.iter_blocks_backwards(dataset_id())] == list(range(2999, -1, -1))

    def test_blocks_committed_while_a_chain_is_read_do_not_appear(self, store: MetadataStore) -> None:
        first = creation(count=1500)
        store.commit(first)
        reader = store.iter_blocks(dataset_id())
        next(reader)
        store.commit(growth(first, 5))
        assert sum(1 for _ in reader) == 1499

    def test_dataset_deleted_while_its_chain_is_read_stops_the_reader(self, store: MetadataStore) -> None:
        store.commit(creation(count=1500))
        reader = store.iter_blocks(dataset_id())
        next(reader)
        store.delete_dataset(dataset_id())
        with pytest.raises(DatasetNotFoundError):
            list(reader)

    def test_dataset_that_came_back_while_its_chain_was_read_stops_the_reader(self, store: MetadataStore) -> None:
        store.commit(creation(count=1500))
        reader = store.iter_blocks(dataset_id())
        next(reader)
        store.delete_dataset(dataset_id())
        store.commit(creation(count=1501))
        with pytest.raises(DatasetNotFoundError):
            list(reader)

    def test_landmarks_are_all_definitions_and_the_newest_of_each_other_role(self, store: MetadataStore) -> None:
        commit = creation(count=1_100)
        store.commit(commit)
        for upto in (0, 1, 2, 3, 10, 40, 1_098, 1_099):
            before = commit.blocks[: upto + 1]
            newest = {block.role: block for block in before}
            wanted = [block for block in before if block.role is BlockRole.DEFINITION or block is newest[block.role]]
            assert list(store.iter_landmarks(dataset_id(), upto=upto)) == [_stored(block) for block in wanted]
        assert list(store.iter_landmarks(dataset_id())) == list(store.iter_landmarks(dataset_id(), upto=1_099))
        with pytest.raises(BlockNotFoundError):
            list(store.iter_landmarks(dataset_id(), upto=1_100))

    def test_blocks_with_rows_are_read_from_both_ends(self, store: MetadataStore) -> None:
        first = creation(count=3_000)
        store.commit(first)
        wanted = [_stored(b) for b in first.blocks if b.role in (BlockRole.ROWS, BlockRole.ROWS_AND_WATERMARK)]
        assert len(wanted) > 1_024
        reader = store.iter_blocks_with_rows(dataset_id())
        begun = [next(reader)]
        store.commit(growth(first, 9))
        assert begun + list(reader) == wanted
        backwards = list(store.iter_blocks_with_rows(dataset_id(), newest_first=True))
        assert [b for b in reversed(backwards) if b.sequence_number < 3_000] == wanted
        assert len(backwards) > len(wanted)

    def test_dataset_without_rows_has_no_blocks_with_rows(self, store: MetadataStore) -> None:
        store.commit(creation(count=2))
        assert list(store.iter_blocks_with_rows(dataset_id())) == []
        with pytest.raises(DatasetNotFoundError):
            list(store.iter_blocks_with_rows(dataset_id(9)))

    def test_blocks_of_a_role_are_counted_in_a_range(self, store: MetadataStore) -> None:
        commit = creation(count=6)
        store.commit(commit)
        for first, last in ((0, 5), (1, 3), (5, 9), (3, 2)):
            for role in BlockRole:
                wanted = [b for b in commit.blocks if b.role is role and first <= b.sequence_number <= last]
                assert store.count_blocks(dataset_id(), role, first=first, last=last) == len(wanted)
        with pytest.raises(DatasetNotFoundError):
            store.count_blocks(dataset_id(9), BlockRole.ROWS, first=0, last=9)

    def test_one_block_is_found_by_hash_and_by_number(self, store: MetadataStore) -> None:
        commit = creation(count=4)
        store.commit(commit)
        block = commit.blocks[2]
        assert store.find_block(dataset_id(), block.hash) == _stored(block)
        assert store.find_block_by_number(dataset_id(), 2) == _stored(block)
        assert store.find_block(dataset_id(2), block.hash) is None
        assert store.find_block_by_number(dataset_id(), 4) is None

    def test_growth_moves_the_head_and_the_chain_state(self, store: MetadataStore) -> None:
        first = creation()
        store.commit(first)
        second = growth(first, 2)
        record = store.commit(second)
        assert record.head == second.new_head
        assert store.get_chain_state(dataset_id()) == (second.new_head, b"state after growth")
        assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == [0, 1, 2]

    def test_commit_on_an_old_head_loses_and_changes_nothing(self, store: MetadataStore) -> None:
        first = creation()
        store.commit(first)
        won = growth(first, salt="won")
        store.commit(won)
        lost = growth(first, salt="lost", objects=(object_hash(1),), merge_state=object_hash(2))
        with pytest.raises(HeadMovedError) as caught:
            store.commit(lost)
        assert (caught.value.expected, caught.value.found) == (first.new_head.hash, won.new_head.hash)
        assert store.get_head(dataset_id()) == won.new_head
        assert store.list_referenced_objects() == frozenset()
        assert store.find_block(dataset_id(), lost.blocks[0].hash) is None

    def test_creating_a_dataset_twice_loses_the_second_time(self, store: MetadataStore) -> None:
        store.commit(creation())
        with pytest.raises(HeadMovedError):
            store.commit(creation(name="other"))
        assert len(store.list_datasets()) == 1

    def test_taken_name_is_refused_with_its_holder(self, store: MetadataStore) -> None:
        store.commit(creation(1, name="same"))
        with pytest.raises(NameTakenError) as caught:
            store.commit(creation(2, name="same"))
        assert caught.value.holder == dataset_id(1)
        assert len(store.list_datasets()) == 1

    def test_growth_of_an_unknown_dataset_is_refused(self, store: MetadataStore) -> None:
        with pytest.raises(DatasetNotFoundError):
            store.commit(growth(creation()))

    def test_gap_after_the_head_is_our_own_mistake(self, store: MetadataStore) -> None:
        first = creation()
        store.commit(first)
        with pytest.raises(ValueError, match="expected block 1"):
            store.commit(growth(first, blocks=blocks(2, 1)))

    def test_blocks_of_others_without_acceptance_are_our_own_mistake(self, store: MetadataStore) -> None:
        first = pulled_creation()
        store.commit(first)
        with pytest.raises(ValueError, match="acceptance"):
            store.commit(growth(first))
        assert store.get_head(dataset_id()) == first.new_head

    def test_commit_carries_everything_or_nothing(self, store: MetadataStore) -> None:
        first = creation()
        store.commit(first)
        second = growth(
            first, objects=(object_hash(1), object_hash(2)), merge_state=object_hash(3), quarantine=_quarantine()
        )
        block = replace(second.blocks[0], replay_record=b"{replay}")
        store.commit(replace(second, blocks=(block,), signed_head=b"head"))
        assert store.find_replay_record(dataset_id(), block.hash) == ReplayRecord(
            dataset_id(), 1, block.hash, b"{replay}"
        )
        assert store.find_merge_state(dataset_id(), block.hash) == object_hash(3)
        assert list(store.iter_quarantine(dataset_id())) == [_quarantine()]
        assert store.list_referenced_objects() == {object_hash(n) for n in (1, 2, 3, 7)}
        assert [n for n in range(9) if store.is_referenced_object(object_hash(n))] == [1, 2, 3, 7]

    def test_object_named_twice_is_one_object(self, store: MetadataStore) -> None:
        first = creation(objects=(object_hash(1),))
        store.commit(first)
        store.commit(growth(first, objects=(object_hash(1), object_hash(1))))
        assert store.list_referenced_objects() == {object_hash(1)}

    def test_reopened_store_shows_what_was_committed(self, store: MetadataStore) -> None:
        record = store.commit(creation())
        again = self.make_store()
        assert again.list_datasets() == (record,)
        again.close()

    def test_several_threads_see_their_commits_one_after_another(self, store: MetadataStore) -> None:
        base = creation()
        store.commit(base)
        outcomes: list[bool] = []

        def compete(name: str) -> None:
            head = base
            with suppress(HeadMovedError):
                for _ in range(5):
                    attempt = growth(head, salt=name)
                    store.commit(attempt)
                    outcomes.append(True)
                    head = attempt

        threads = [threading.Thread(target=compete, args=(f"thread {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Whoever extends the first block wins, and nobody can follow on a head that is not there.
        assert store.get_head(dataset_id()).sequence_number == len(outcomes) == 5
        assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == list(range(6))

    def test_publishing_is_switched(self, store: MetadataStore) -> None:
        store.commit(creation())
        store.set_published(dataset_id(), False)
        assert store.list_datasets()[0].published is False

    def test_pinned_key_is_replaced_by_the_operator(self, store: MetadataStore) -> None:
        store.commit(pulled_creation())
        store.set_pinned_key(dataset_id(), did_key(2))
        assert store.list_datasets()[0].pinned_key == did_key(2)
        store.set_pinned_key(dataset_id(), None)
        assert store.list_datasets()[0].pinned_key is None

    def test_deleted_dataset_leaves_only_evidence(self, store: MetadataStore) -> None:
        commit = creation(objects=(object_hash(1),), merge_state=object_hash(2), quarantine=_quarantine())
        store.commit(commit)
        store.put_remote(Remote(dataset_id(), RemoteDirection.PULL, "https://a"))
        store.put_attestation(_attestation(b"a"))
        store.delete_dataset(dataset_id())
        assert store.find_dataset(dataset_id()) is None
        assert store.find_block(dataset_id(), commit.blocks[0].hash) is None
        assert store.list_referenced_objects() == frozenset()
        assert len(list(store.iter_attestations(dataset_id()))) == 1

    def test_renamed_dataset_is_found_under_its_new_name_alone(self, store: MetadataStore) -> None:
        store.commit(creation(name="old"))
        store.commit(creation(2, name="other"))
        store.rename_dataset(dataset_id(), "new")
        assert store.find_dataset_by_name("old") is None
        found = store.find_dataset_by_name("new")
        assert found is not None
        assert found.id == dataset_id()
        for taken in ("other", "OTHER"):
            with pytest.raises(NameTakenError):
                store.rename_dataset(dataset_id(), taken)
        with pytest.raises(DatasetNotFoundError):
            store.rename_dataset(dataset_id(7), "x")
        assert [record.name for record in store.list_datasets()] == ["new", "other"]

    def test_deleted_dataset_can_come_back(self, store: MetadataStore) -> None:
        store.commit(creation())
        store.delete_dataset(dataset_id())
        store.commit(creation(name="again"))
        assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == [0]

    @pytest.mark.parametrize(
        "method",
        ["get_head", "get_chain_state", "delete_dataset", "iter_acceptances", "iter_signed_heads", "iter_quarantine"],
    )
    def test_absent_dataset_is_named(self, store: MetadataStore, method: str) -> None:
        store.commit(creation(2))
        with pytest.raises(DatasetNotFoundError) as caught:
            getattr(store, method)(dataset_id(1))
        assert str(dataset_id(1)) in str(caught.value)

    # Objects that a dataset has (EX-81)

    def test_dataset_has_what_was_brought_for_it_and_nothing_else(self, store: MetadataStore) -> None:
        first = creation()
        named = object_hash(1), object_hash(2), object_hash(3)
        absent = frozenset(named[1:])
        store.commit(replace(first, objects=named, absent=absent, not_brought=frozenset(named[2:])))
        assert [store.has_dataset_object(dataset_id(), name) for name in named] == [True, True, False]
        assert not store.has_dataset_object(dataset_id(), object_hash(4))
        assert not store.has_dataset_object(dataset_id(2), named[0])
        store.mark_brought(dataset_id(), named[2:])
        assert store.has_dataset_object(dataset_id(), named[2])
        assert store.list_absent_objects(dataset_id()) == absent

    def test_object_that_is_here_for_this_node_alone_is_none_that_the_dataset_has(self, store: MetadataStore) -> None:
        named = (object_hash(1),)
        both = frozenset(named)
        store.commit(replace(creation(), objects=named, absent=both, not_brought=both))
        store.mark_present(dataset_id(), named, brought=False)
        assert store.list_absent_objects(dataset_id()) == frozenset()
        assert not store.has_dataset_object(dataset_id(), named[0])
        store.mark_present(dataset_id(), named)
        store.mark_absent(dataset_id(), named)
        assert store.has_dataset_object(dataset_id(), named[0])

    def test_what_was_not_brought_is_absent(self) -> None:
        named = (object_hash(1),)
        with pytest.raises(ValueError, match="absent"):
            replace(creation(), objects=named, not_brought=frozenset(named))

    # Signatures and acceptances

    def test_signed_head_of_an_older_block_is_not_the_present_one(self, store: MetadataStore) -> None:
        first = pulled_creation()
        store.commit(first)
        second = growth(first)
        store.commit(replace(second, acceptance=acceptance(second.new_head, trust=Trust.UNSIGNED)))
        assert store.find_signed_head(dataset_id()) is None
        assert [s.raw for s in store.iter_signed_heads(dataset_id())] == [b"signed head document"]
        assert store.list_datasets()[0].trust is Trust.UNSIGNED

    def test_contradicting_documents_stay_beside_each_other(self, store: MetadataStore) -> None:
        commit = pulled_creation()
        store.commit(commit)
        other = SignedHead(dataset_id(), commit.new_head, b"other document")
        store.put_signed_head(other)
        store.put_signed_head(other)
        assert [s.raw for s in store.iter_signed_heads(dataset_id())] == [b"signed head document", b"other document"]

    def test_key_events_are_added_to_what_was_known_or_not_at_all(self, store: MetadataStore) -> None:
        commit = pulled_creation()
        store.commit(commit)
        pin, other = DidKey(b"\x01" * 32), DidKey(b"\x02" * 32)
        store.set_pinned_key(dataset_id(), pin)
        change = KeyLogChange(
            dataset_id=dataset_id(), raws=(b"first", b"second"), known=0, received_at=NOON, pinned_key=other
        )
        for wrong, error in (
            (replace(change, known=1), KeyLogMovedError),
            (replace(change, expected_head=object_hash(1)), HeadMovedError),
        ):
            with pytest.raises(error):
                store.add_key_events(wrong)
            assert list(store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT)) == []
            assert store.list_datasets()[0].pinned_key == pin

        store.add_key_events(replace(change, expected_head=commit.new_head.hash, signed_head=b"by the new key"))

        kept = [item.raw for item in store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT)]
        assert kept == [b"first", b"second"]
        assert store.list_datasets()[0].pinned_key == other
        signed = store.find_signed_head(dataset_id())
        assert signed is not None
        assert signed.raw == b"by the new key"
        with pytest.raises(KeyLogMovedError):
            store.commit(growth(commit, acceptance=acceptance(growth(commit).new_head)))
        store.commit(growth(commit, acceptance=acceptance(growth(commit).new_head), known_key_events=2))
        store.delete_dataset(dataset_id())
        assert len(list(store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT))) == 2

    def test_unsigned_dataset_gets_no_pin_by_key_events(self, store: MetadataStore) -> None:
        store.commit(creation())
        store.add_key_events(
            KeyLogChange(
                dataset_id=dataset_id(), raws=(b"x",), known=0, received_at=NOON, pinned_key=DidKey(b"\x01" * 32)
            )
        )
        assert store.list_datasets()[0].pinned_key is None

    def test_signed_head_of_a_foreign_block_is_refused(self, store: MetadataStore) -> None:
        store.commit(creation())
        with pytest.raises(BlockNotFoundError):
            store.put_signed_head(SignedHead(dataset_id(), Head(0, object_hash(1)), b"x"))

    def test_later_acceptance_raises_the_trust(self, store: MetadataStore) -> None:
        commit = pulled_creation()
        assert commit.acceptance is not None
        store.commit(replace(commit, acceptance=replace(commit.acceptance, trust=Trust.SIGNED)))
        store.put_acceptance(dataset_id(), acceptance(commit.new_head))
        assert store.list_datasets()[0].trust is Trust.REEXECUTED
        assert [a.trust for a in store.iter_acceptances(dataset_id())] == [Trust.SIGNED, Trust.REEXECUTED]

    def test_acceptance_of_an_old_head_is_refused(self, store: MetadataStore) -> None:
        store.commit(pulled_creation())
        with pytest.raises(HeadMovedError):
            store.put_acceptance(dataset_id(), acceptance(Head(0, object_hash(1))))

    # Evidence

    def test_replay_record_is_added_and_replaced(self, store: MetadataStore) -> None:
        commit = creation(count=2)
        store.commit(commit)
        block = commit.blocks[1]
        for raw in (b"first", b"second"):
            store.put_replay_record(ReplayRecord(dataset_id(), 1, block.hash, raw))
        found = store.find_replay_record(dataset_id(), block.hash)
        assert found is not None
        assert found.raw == b"second"
        assert store.find_replay_record(dataset_id(), commit.blocks[0].hash) is None

    def test_replay_record_of_a_foreign_block_is_refused(self, store: MetadataStore) -> None:
        store.commit(creation())
        with pytest.raises(BlockNotFoundError):
            store.put_replay_record(ReplayRecord(dataset_id(), 0, object_hash(1), b"x"))

    def test_attestation_of_a_dataset_not_held_is_kept_once(self, store: MetadataStore) -> None:
        assert store.put_attestation(_attestation(b"a")) is True
        assert store.put_attestation(_attestation(b"a")) is False
        assert list(store.iter_attestations(dataset_id())) == [_attestation(b"a")]

    @pytest.mark.parametrize(("number", "found"), [(1, 0), (2, 1), (5, 1), (6, 0)])
    def test_attestations_are_found_by_the_block_they_cover(
        self, store: MetadataStore, number: int, found: int
    ) -> None:
        store.put_attestation(_attestation(b"a", first=2, last=5))
        assert len(list(store.iter_attestations(dataset_id(), sequence_number=number))) == found

    # Ingests

    def test_quarantine_without_block_is_kept(self, store: MetadataStore) -> None:
        store.commit(creation())
        store.put_quarantine(_quarantine(None))
        assert list(store.iter_quarantine(dataset_id())) == [_quarantine(None)]

    def test_only_the_newest_merge_state_is_kept(self, store: MetadataStore) -> None:
        first = creation(merge_state=object_hash(1))
        store.commit(first)
        second = growth(first, merge_state=object_hash(2))
        store.commit(second)
        assert store.find_merge_state(dataset_id(), first.new_head.hash) is None
        assert store.find_merge_state(dataset_id(), second.new_head.hash) == object_hash(2)
        assert store.list_referenced_objects() == {object_hash(2)}
        assert store.find_newest_merge_state(dataset_id()) == object_hash(2)
        assert [store.is_referenced_object(object_hash(n)) for n in (1, 2)] == [False, True]

    def test_merge_state_that_was_computed_again_is_kept(self, store: MetadataStore) -> None:
        commit = creation()
        store.commit(commit)
        store.put_merge_state(dataset_id(), commit.new_head.hash, object_hash(3))
        assert store.find_merge_state(dataset_id(), commit.new_head.hash) == object_hash(3)

    # Others

    def test_remotes_are_kept_once_and_in_order(self, store: MetadataStore) -> None:
        store.commit(creation())
        remotes = tuple(Remote(dataset_id(), RemoteDirection.PULL, url) for url in ("https://b", "https://a"))
        for remote in (*remotes, remotes[0]):
            store.put_remote(remote)
        assert store.list_remotes(dataset_id(), RemoteDirection.PULL) == remotes
        assert store.list_remotes(dataset_id(), RemoteDirection.PUSH) == ()
        store.delete_remote(remotes[0])
        assert store.list_remotes(dataset_id(), RemoteDirection.PULL) == remotes[1:]

    def test_peer_keeps_its_first_key_and_time(self, store: MetadataStore) -> None:
        store.put_peer(Peer(url="https://p", node_key=None, first_seen=NOON))
        store.put_peer(Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(5),), first_seen=LATER))
        kept = store.put_peer(
            Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(4), did_key(5)), first_seen=LATER)
        )
        assert kept == Peer(
            url="https://p", node_key=did_key(1), publisher_keys=(did_key(5), did_key(4)), first_seen=NOON
        )
        assert store.find_peer("https://p") == kept
        assert store.list_peers() == (kept,)

    @pytest.mark.parametrize("shown", [did_key(2), None], ids=["another-key", "no-key"])
    def test_peer_with_another_key_is_refused_and_stays_as_it_was(self, store: MetadataStore, shown: object) -> None:
        peer = Peer(url="https://p", node_key=did_key(1), first_seen=NOON)
        store.put_peer(peer)
        with pytest.raises(PeerKeyChangedError):
            store.put_peer(replace(peer, node_key=shown, publisher_keys=(did_key(9),)))  # type: ignore[arg-type]
        assert store.find_peer("https://p") == peer

    def test_forgotten_peer_may_come_with_another_key(self, store: MetadataStore) -> None:
        store.put_peer(Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(3),), first_seen=NOON))
        store.delete_peer("https://p")
        peer = Peer(url="https://p", node_key=did_key(2), first_seen=LATER)
        assert store.put_peer(peer) == peer

    def test_token_is_found_by_the_hash_of_its_secret(self, store: MetadataStore) -> None:
        token = AccessToken(
            id="t1", secret_hash=b"h" * 32, label="CI", scopes=("push", "push:x"), created_at=NOON, expires_at=LATER
        )
        store.put_token(token)
        assert store.find_token(b"h" * 32) == token
        assert store.find_token(b"x" * 32) is None
        assert store.list_tokens() == (token,)

    def test_revoked_token_stays_visible_with_its_first_time(self, store: MetadataStore) -> None:
        store.put_token(AccessToken(id="t1", secret_hash=b"h" * 32, label="", scopes=(), created_at=NOON))
        assert store.revoke_token("t1", NOON) is True
        assert store.revoke_token("t1", LATER) is True
        assert store.revoke_token("t2", LATER) is False
        assert store.list_tokens()[0].revoked_at == NOON

    def test_token_with_a_known_secret_is_our_own_mistake(self, store: MetadataStore) -> None:
        token = AccessToken(id="t1", secret_hash=b"h" * 32, label="", scopes=(), created_at=NOON)
        store.put_token(token)
        with pytest.raises(ValueError, match="t2"):
            store.put_token(replace(token, id="t2"))

    def test_audit_shows_the_newest_lines_first(self, store: MetadataStore) -> None:
        entries = [
            AuditEntry(at=NOON, actor="cli", command=f"pull {n}", subject="d", outcome=Outcome.DONE, detail="x")
            for n in range(3)
        ]
        for entry in entries:
            store.append_audit(entry)
        assert list(store.iter_audit(limit=2)) == [entries[2], entries[1]]
