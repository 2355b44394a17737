"""How chains grow, and what that left."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from odf_node.ports.commits import Acceptance, Commit, NewBlock, NewDataset
from odf_node.ports.datasets import DatasetRecord, Origin, ReplacedHistory, SignedHead, StoredBlock
from odf_node.ports.errors import DatasetNotFoundError, HeadMovedError, KeyLogMovedError, NameTakenError
from odf_node.ports.evidence import Attestation, DocumentKind, EvidenceDocument
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust, weakest
from support.memory_store.ingests import keep_answer, require_new_key
from support.memory_store.object_names import note_present
from support.memory_store.quarantine import put_quarantine, settle
from support.memory_store.tables import KeptDataset, MemoryPort, NamedObject, Tables, as_stored


class MemoryCommits(MemoryPort):
    """``CommitStore`` in memory."""

    def commit(self, commit: Commit) -> DatasetRecord:
        tables = self._tables
        with tables.lock:
            require_key_events(tables, commit.dataset_id, commit.known_key_events)
            held = tables.datasets.get(commit.dataset_id)
            if commit.new_dataset is not None:
                kept = _begin(tables, held, commit, commit.new_dataset)
            else:
                kept = _follow(held, commit)
            if commit.answer is not None:
                require_new_key(kept, commit.answer)
            if commit.settlement is not None:
                settle(kept, commit.settlement, commit.new_head.sequence_number)
            _append(tables, kept, commit)
            if commit.answer is not None:
                keep_answer(kept, commit.answer)
            tables.datasets[commit.dataset_id] = kept
            if commit.acceptance is not None:
                for raw in commit.key_events:
                    at = commit.acceptance.accepted_at
                    tables.keep_document(EvidenceDocument(DocumentKind.KEY_EVENT, commit.dataset_id, raw, at))
            if commit.signed_head is not None:
                signed = SignedHead(commit.dataset_id, commit.new_head, commit.signed_head)
                kept.signed_heads.append((tables.next_arrival(), signed))
            for attestation in commit.attestations:
                tables.keep_attestation(attestation)
            return kept.record

    def put_acceptance(
        self,
        dataset_id: DatasetId,
        acceptance: Acceptance,
        *,
        rests_on: Trust | None = None,
        attestations: Sequence[Attestation] = (),
        present: Iterable[Multihash] = (),
    ) -> None:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            if kept.record.head.hash != acceptance.head.hash:
                raise HeadMovedError(dataset_id, acceptance.head.hash, kept.record.head.hash)
            kept.acceptances.append(acceptance)
            kept.record = replace(kept.record, trust=rests_on or acceptance.trust)
            for attestation in attestations:
                self._tables.keep_attestation(attestation)
            note_present(kept, present, brought=True)

    def iter_acceptances(self, dataset_id: DatasetId) -> Iterator[Acceptance]:
        return iter(tuple(self._tables.get(dataset_id).acceptances))

    def list_replaced_histories(self, dataset_id: DatasetId) -> tuple[ReplacedHistory, ...]:
        return tuple(history for history, _ in self._tables.get(dataset_id).replaced)

    def iter_replaced_blocks(self, history: ReplacedHistory) -> Iterator[StoredBlock]:
        with self._tables.lock:
            found = [each for kept in self._tables.datasets.values() for each in kept.replaced if each[0] == history]
        return iter(found[0][1] if found else ())

    def mend_block(self, dataset_id: DatasetId, block: NewBlock) -> None:
        if Multihash.of_sha3_256(block.raw) != block.hash:
            raise ValueError(f"the bytes for block {block.sequence_number} are not those of {block.hash}")
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            there = kept.blocks[block.sequence_number]
            kept.blocks[block.sequence_number] = replace(block, signature=there.signature or block.signature)


def require_key_events(tables: Tables, dataset_id: DatasetId, known: int) -> None:
    """Check that a dataset has as many key events as somebody read before."""
    documents = tables.documents.values()
    found = sum(1 for each in documents if each.dataset_id == dataset_id and each.kind is DocumentKind.KEY_EVENT)
    if found != known:
        raise KeyLogMovedError(dataset_id, known, found)


def _begin(tables: Tables, held: KeptDataset | None, commit: Commit, new: NewDataset) -> KeptDataset:
    if held is not None:
        raise HeadMovedError(commit.dataset_id, None, held.record.head.hash)
    for other in tables.datasets.values():
        if other.record.name == new.name:
            raise NameTakenError(new.name, other.record.id)
    record = DatasetRecord(
        id=commit.dataset_id,
        name=new.name,
        kind=new.kind,
        head=commit.new_head,
        origin=new.origin,
        origin_url=new.origin_url,
        trust=Trust.OWN if commit.acceptance is None else commit.acceptance.trust,
        pinned_key=new.pinned_key,
        published=new.published,
        created_at=new.created_at,
    )
    return KeptDataset(record, commit.chain_state, new.asked_name)


def _follow(held: KeptDataset | None, commit: Commit) -> KeptDataset:
    if held is None:
        raise DatasetNotFoundError(commit.dataset_id)
    head, is_pulled = held.record.head, held.record.origin is Origin.PULLED
    if head.hash != commit.expected_head:
        raise HeadMovedError(commit.dataset_id, commit.expected_head, head.hash)
    if is_pulled and commit.acceptance is None:
        raise ValueError("blocks of others are committed with an acceptance (HOME-17)")
    after = head.sequence_number if commit.replaces_after is None else commit.replaces_after
    if commit.replaces_after is not None and (not is_pulled or not 0 <= after < head.sequence_number):
        raise ValueError("only blocks of others, behind their first one, are replaced")
    if commit.blocks[0].sequence_number != after + 1:
        raise ValueError(f"expected block {after + 1} to follow the head, found {commit.blocks[0].sequence_number}")
    if commit.replaces_after is not None:
        _move_aside(held, commit, after)
    return held


def _move_aside(kept: KeptDataset, commit: Commit, after: int) -> None:
    assert commit.acceptance is not None
    history = ReplacedHistory(
        id=len(kept.replaced) + 1,
        replaced_at=commit.acceptance.accepted_at,
        source_url=commit.acceptance.source_url,
        after=after,
        head=kept.record.head,
        replaced_by=commit.new_head,
    )
    kept.replaced.append((history, [as_stored(block) for block in kept.blocks[after + 1 :]]))
    del kept.blocks[after + 1 :]
    kept.replay_records = {number: raw for number, raw in kept.replay_records.items() if number <= after}


def _append(tables: Tables, kept: KeptDataset, commit: Commit) -> None:
    kept.blocks += commit.blocks
    kept.replay_records |= {b.sequence_number: b.replay_record for b in commit.blocks if b.replay_record is not None}
    for name in commit.objects:
        now = NamedObject(name in commit.absent, name not in commit.not_brought)
        before = kept.objects.get(name, now)
        kept.objects[name] = NamedObject(before.absent and now.absent, before.brought or now.brought)
    kept.chain_state = commit.chain_state
    kept.record = replace(kept.record, head=commit.new_head)
    if commit.acceptance is not None:
        kept.acceptances.append(commit.acceptance)
        # New blocks on good grounds do not better those that came before (ACCEPT-5).
        kept.record = replace(kept.record, trust=weakest((kept.record.trust, commit.acceptance.trust)))
    if commit.quarantine is not None:
        put_quarantine(tables, kept, commit.quarantine)
    if commit.fetched_place is not None:
        kept.fetched_place = commit.fetched_place
    if commit.merge_state is not None:
        kept.merge_state = (commit.new_head.hash, commit.merge_state)
