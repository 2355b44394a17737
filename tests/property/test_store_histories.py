"""Random histories of a home's store: a step that fails leaves nothing, and another process reads the same."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odf_node.home_folder import HomeFolder
from odf_node.records.access import ReadGrants
from odf_node.records.commits import Commit, NewBlock
from odf_node.records.datasets import HeldHead, Origin, Remote, RemoteDirection, Repository
from odf_node.records.evidence import SeenHead, Verified
from odf_node.records.quarantine import Fate, RowId, SettledRows
from odf_node.store import MetadataStore
from odf_protocol.errors import OdfError
from odf_protocol.head import Head
from odf_protocol.policy import Trust
from support.store_values import (
    NOON,
    acceptance,
    attestation,
    blocks,
    creation,
    dataset_id,
    growth,
    object_hash,
    pulled_creation,
    quarantine_file,
)

FATES = st.sampled_from(Fate)
NUMBERS = st.integers(1, 3)
"""Datasets; few, so that histories meet again."""
NAMES = st.sampled_from(("one", "Two", "three"))
OBJECTS = st.sets(st.integers(0, 5), max_size=3)
TRUSTS = st.sampled_from((Trust.SIGNED, Trust.ATTESTED, Trust.REEXECUTED))


class StoreHistories(RuleBasedStateMachine):
    """Each step goes to a store; one that it carries out goes to a second home, one that it rejects does not.

    Then the second home, which never saw a step that failed, answers all that can be asked as the first one does, and
    so does a second connection to the first one, as of another process.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        first, second = (HomeFolder(Path(self._folder.name) / name) for name in ("first", "second"))
        self._store, self._other_process, self._spared = (
            MetadataStore(first),
            MetadataStore(first),
            MetadataStore(second),
        )
        self._stores = (self._store, self._other_process, self._spared)
        self._salt = 0

    def teardown(self) -> None:
        for store in self._stores:
            store.close()
        self._folder.cleanup()

    @initialize()
    def start_with_two_datasets(self) -> None:
        self._apply(lambda store: store.commit(creation(1, name="one", count=2)))
        self._apply(lambda store: store.commit(pulled_creation(2, count=4)))

    @rule(number=NUMBERS, name=NAMES, count=st.integers(1, 4), pulled=st.booleans(), objects=OBJECTS)
    def create(self, number: int, name: str, count: int, pulled: bool, objects: set[int]) -> None:
        made = pulled_creation(number, count=count) if pulled else creation(number, count=count)
        assert made.new_dataset is not None
        named = tuple(map(object_hash, sorted(objects)))
        made = replace(made, new_dataset=replace(made.new_dataset, name=name), objects=named)
        self._apply(lambda store: store.commit(made))

    @rule(
        number=NUMBERS,
        count=st.integers(1, 3),
        stale=st.sampled_from((False, False, True)),
        objects=OBJECTS,
        absent=OBJECTS,
        trust=TRUSTS,
        beside=st.booleans(),
    )
    def grow(
        self, number: int, count: int, stale: bool, objects: set[int], absent: set[int], trust: Trust, beside: bool
    ) -> None:
        """Also on a head that is not there any more."""
        head = self._head(number)
        if stale:
            head = Head(head.sequence_number, object_hash(99))
        made = blocks(head.sequence_number + 1, count, salt=self._next_salt())
        if beside:
            made = (replace(made[0], step_record=b"record"), *made[1:])
        self._apply(lambda store: store.commit(self._growth(number, head, made, objects, absent, trust, beside)))

    @rule(number=NUMBERS, count=st.integers(1, 3), back=st.integers(0, 3), trust=TRUSTS)
    def replace_history(self, number: int, count: int, back: int, trust: Trust) -> None:
        """Of datasets of others; of own ones it is rejected."""
        head = self._head(number)
        after = max(0, head.sequence_number - back)
        made = blocks(after + 1, count, salt=self._next_salt())
        commit = self._growth(number, head, made, set(), set(), trust, False)
        self._apply(lambda store: store.commit(replace(commit, replaces_after=after)))

    @rule(number=NUMBERS, name=NAMES)
    def rename(self, number: int, name: str) -> None:
        def change(store: MetadataStore) -> None:
            record = store.find_dataset(dataset_id(number))
            store.rename_dataset(dataset_id(number), "none" if record is None else record.name, name)

        self._apply(change)

    @rule(number=NUMBERS, published=st.booleans())
    def publish(self, number: int, published: bool) -> None:
        self._apply(lambda store: store.set_published(dataset_id(number), published))

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        self._apply(lambda store: store.delete_dataset(dataset_id(number)))

    @rule(number=NUMBERS, trust=TRUSTS, present=OBJECTS, stale=st.booleans())
    def judge_again(self, number: int, trust: Trust, present: set[int], stale: bool) -> None:
        head = self._head(number)
        found = acceptance(Head(head.sequence_number, object_hash(98)) if stale else head, trust=trust)
        hashes = [object_hash(n) for n in sorted(present)]
        self._apply(lambda store: store.put_acceptance(dataset_id(number), found, present=hashes))

    @rule(number=NUMBERS, objects=OBJECTS, brought=st.booleans())
    def objects_come(self, number: int, objects: set[int], brought: bool) -> None:
        hashes = [object_hash(n) for n in sorted(objects)]
        self._apply(lambda store: store.mark_present(dataset_id(number), hashes, brought=brought))

    @rule(number=NUMBERS, objects=OBJECTS, brought=st.booleans())
    def objects_may_go(self, number: int, objects: set[int], brought: bool) -> None:
        hashes = [object_hash(n) for n in sorted(objects)]
        self._apply(lambda store: (store.mark_brought if brought else store.mark_absent)(dataset_id(number), hashes))

    @rule(number=NUMBERS, text=st.sampled_from((b"head a", b"head b")), known=st.booleans())
    def vouch(self, number: int, text: bytes, known: bool) -> None:
        head = self._head(number) if known else Head(77, object_hash(97))
        # A document is about one head.
        signed = HeldHead(dataset_id(number), head, text + head.hash.digest)
        self._apply(lambda store: store.put_signed_head(signed))

    @rule(number=NUMBERS, at=st.integers(0, 5))
    def see_head(self, number: int, at: int) -> None:
        seen = SeenHead(
            dataset_id=dataset_id(number),
            sequence_number=at,
            block_hash=object_hash(at),
            raw=b"seen %d" % at,
            source="https://peer.example",
            seen_at=NOON,
        )
        self._apply(lambda store: store.put_seen_head(seen))

    @rule(number=NUMBERS, first=st.integers(0, 3), text=st.sampled_from((b"a", b"b")))
    def attest(self, number: int, first: int, text: bytes) -> None:
        stated = replace(attestation(text, first, first + 1), dataset_id=dataset_id(number))
        self._apply(lambda store: store.put_attestation(stated))

    @rule(number=NUMBERS, replayed=st.booleans())
    def verify(self, number: int, replayed: bool) -> None:
        head = self._head(number)
        self._apply(lambda store: store.put_verified(Verified(dataset_id(number), head, replayed, b"state", NOON)))

    @rule(number=NUMBERS, rows=st.integers(1, 3))
    def set_rows_aside(self, number: int, rows: int) -> None:
        aside = replace(quarantine_file(None), dataset_id=dataset_id(number), row_count=rows)
        self._apply(lambda store: store.put_quarantine(aside))

    @rule(number=NUMBERS, entry=st.integers(1, 4), row=st.integers(1, 3), text=st.sampled_from(("x", None)))
    def fix_row(self, number: int, entry: int, row: int, text: str | None) -> None:
        self._apply(lambda store: store.fix_rows(dataset_id(number), {RowId(entry, row): {"city": text}}))

    @rule(
        number=NUMBERS, entry=st.integers(1, 4), rows=st.sets(st.integers(1, 3), min_size=1), fate=st.sampled_from(Fate)
    )
    def settle(self, number: int, entry: int, rows: set[int], fate: Fate) -> None:
        done = SettledRows(fate=fate, rows=tuple(RowId(entry, row) for row in sorted(rows)))
        self._apply(lambda store: store.settle(dataset_id(number), done))

    @rule(number=NUMBERS, direction=st.sampled_from(RemoteDirection), path=st.sampled_from("ab"), gone=st.booleans())
    def remember_remote(self, number: int, direction: RemoteDirection, path: str, gone: bool) -> None:
        remote = Remote(dataset_id(number), direction, f"https://peer.example/{path}")
        self._apply(lambda store: (store.delete_remote if gone else store.put_remote)(remote))

    @rule(name=NAMES, path=st.sampled_from("ab"), gone=st.booleans())
    def name_repository(self, name: str, path: str, gone: bool) -> None:
        repository = Repository(name, f"https://peer.example/{path}")
        self._apply(lambda store: store.delete_repository(name) if gone else store.put_repository(repository))

    @invariant()
    def everything_that_is_read_is_alike(self) -> None:
        first, *others = map(self._read_all, self._stores)
        for other in others:
            assert {name: (first[name], other[name]) for name in first if first[name] != other[name]} == {}

    @invariant()
    def chains_have_no_gap_and_end_at_their_heads(self) -> None:
        for store in self._stores:
            for record in store.list_datasets():
                kept = list(store.iter_blocks(record.id))
                assert [block.sequence_number for block in kept] == list(range(record.head.sequence_number + 1))
                assert kept[-1].hash == record.head.hash == store.get_chain_state(record.id)[0].hash

    @invariant()
    def what_may_be_swept_is_named_by_nobody(self) -> None:
        for store in self._stores:
            kept = store.list_referenced_objects()
            assert store.list_expected_objects() <= kept
            for record in store.list_datasets():
                assert store.list_absent_objects(record.id) <= kept

    def _growth(
        self,
        number: int,
        head: Head,
        made: tuple[NewBlock, ...],
        objects: set[int],
        absent: set[int],
        trust: Trust,
        beside: bool,
    ) -> Commit:
        record = self._store.find_dataset(dataset_id(number))
        is_pulled = record is not None and record.origin is Origin.PULLED
        new_head = Head(made[-1].sequence_number, made[-1].hash)
        commit = growth(creation(number), salt="")
        return replace(
            commit,
            expected_head=head.hash,
            blocks=made,
            objects=tuple(map(object_hash, sorted(objects | absent))),
            absent=frozenset(map(object_hash, absent)),
            not_brought=frozenset(map(object_hash, sorted(absent)[:1])),
            signed_head=b"head" if beside else None,
            merge_state=object_hash(8) if beside else None,
            quarantine=replace(quarantine_file(new_head.sequence_number), dataset_id=dataset_id(number))
            if beside
            else None,
            acceptance=acceptance(new_head, trust=trust) if is_pulled else None,
        )

    def _head(self, number: int) -> Head:
        record = self._store.find_dataset(dataset_id(number))
        return Head(0, object_hash(99)) if record is None else record.head

    def _next_salt(self) -> str:
        self._salt += 1
        return f"step {self._salt}"

    def _apply(self, step: Callable[[MetadataStore], object]) -> None:
        try:
            answer = step(self._store)
        except (OdfError, ValueError):
            return
        assert step(self._spared) == answer

    def _read_all(self, store: MetadataStore) -> dict[str, Any]:
        ids = [dataset_id(number) for number in range(1, 4)]
        return {
            "records": store.list_datasets(),
            "readable": store.list_readable(ReadGrants(published=True)),
            "repositories": store.list_repositories(),
            "referenced": store.list_referenced_objects(),
            "expected": store.list_expected_objects(),
            "incomplete": store.list_incomplete_datasets(),
            "with quarantine": store.list_datasets_with_quarantine(),
            "states": store.get_chain_states(ids),
            "found": [store.has_dataset_object(each, object_hash(n)) for each in ids for n in range(6)],
            "named": [store.names_object(each, object_hash(n)) for each in ids for n in range(6)],
        } | {f"{name} of {number}": read for number in range(1, 4) for name, read in self._read(store, number).items()}

    def _read(self, store: MetadataStore, number: int) -> dict[str, Any]:
        """What is known of a dataset; where it is not here, whether that is told alike."""
        which = dataset_id(number)
        reads: dict[str, Callable[[MetadataStore], object]] = {
            "blocks": lambda s: list(s.iter_blocks(which)),
            "backwards": lambda s: list(s.iter_blocks_backwards(which)),
            "landmarks": lambda s: list(s.iter_landmarks(which)),
            "with rows": lambda s: list(s.iter_blocks_with_rows(which)),
            "signed head": lambda s: s.find_signed_head(which),
            "signed heads": lambda s: list(s.iter_signed_heads(which)),
            "seen head": lambda s: s.find_seen_head(which),
            "acceptances": lambda s: list(s.iter_acceptances(which)),
            "attestations": lambda s: list(s.iter_attestations(which)),
            "step records": lambda s: list(s.iter_step_records(which, after=-1, upto=99)),
            "verified": lambda s: s.find_verified(which),
            # The number of a history is a handle, which each home gives as it likes.
            "replaced": lambda s: [
                (replace(history, id=0), list(s.iter_replaced_blocks(history)))
                for history in s.list_replaced_histories(which)
            ],
            "absent": lambda s: s.list_absent_objects(which),
            "merge state": lambda s: s.find_newest_merge_state(which),
            "quarantine": lambda s: [(q, q.id, s.list_row_notes(q.id)) for q in s.iter_quarantine(which)],
            "remotes": lambda s: [s.list_remotes(which, direction) for direction in RemoteDirection],
        }
        return {name: _outcome(read, store) for name, read in reads.items()}


def _outcome(step: Callable[[MetadataStore], object], store: MetadataStore) -> object:
    try:
        return step(store)
    except (OdfError, ValueError) as error:
        return type(error), str(error)


StoreHistories.TestCase.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=40)
TestStoreHistories = StoreHistories.TestCase
