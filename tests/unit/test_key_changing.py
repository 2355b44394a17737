"""Keys of own datasets are changed whole or not at all, and what they sign is taken by others."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odf_gossip.hearsay import Hearsay
from odf_gossip_protocol.item import ItemKind, read_item
from odf_node.acceptance.offers import AcceptOptions
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.adapters.recovery_key_files import (
    find_unfinished_key,
    forget_unfinished_key,
    keep_recovery_key,
    read_recovery_key,
)
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.datasets.writer import ChainWriter
from odf_node.errors import FrozenDatasetError, ProposalRejectedError, RestoredBackupError, UsageError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.keys.changing import KeyChanging
from odf_node.keys.freshness import HeadsFreshness
from odf_node.keys.logs import KeyLogs
from odf_node.keys.renewing import renew_head
from odf_node.keys.reports import KeyReports
from odf_node.ports.keys import PrivateKey
from odf_node.records.errors import HeadMovedError, KeyLogMovedError, SigningKeyLostError, UnsafeKeyFileError
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import SetInfo
from odf_protocol.heads import decode_signed_head, sign_head
from odf_protocol.signatures import sign_block
from odf_protocol.timestamp import Timestamp
from support.key_logs import RECOVERY_KEY, KeyLog
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, PublisherHome
from support.own_datasets import record_of, write
from support.signing import NEW_KEY, OTHER_KEY, did_key_of

SOON, LATER = Timestamp(NOW.seconds + 1), Timestamp(NOW.seconds + 3_600)


@pytest.fixture(autouse=True)
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    return tmp_path / "marks"


@pytest.fixture
def owner(tmp_path: Path, chain: PeerChain) -> Iterator[Node]:
    judge = Judge.create(tmp_path / "owner")
    PublisherHome(judge).keep(chain.up_to(2))
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Node]:
    judge = Judge.create(tmp_path / "reader")
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


def changing(node: Node) -> KeyChanging:
    return KeyChanging(node.home)


@pytest.fixture
def prepared(owner: Node) -> Node:
    changing(owner).prepare(record_of(owner), did_key_of(RECOVERY_KEY), signed_with=None, now=NOW)
    return owner


class Publisher(OfferingPeer):
    """Offers what an owner's home holds, with or without its key log."""

    @classmethod
    def of(cls, node: Node, chain: PeerChain, **changes: Any) -> "Publisher":
        record = record_of(node)
        held = list(node.store.iter_blocks(record.id))
        shown = chain.copy(
            blocks=[decode_block(each.raw, expected_hash=each.hash) for each in held],
            signatures=[each.signature for each in held],
            step_records=[None] * len(held),
        )
        head = node.store.find_signed_head(record.id)
        assert head is not None
        peer = cls(shown, key_events=changes.pop("key_events", KeyLogs(node.store).documents_about(record.id)))
        peer.document = changes.pop("document", head.raw)
        return peer

    document: bytes = b""

    async def get_head(self) -> Any:
        return replace(await super().get_head(), signed_head=self.document)


def pull(node: Node, peer: OfferingPeer, *, force: bool = False) -> Any:
    return asyncio.run(
        node.taking.take(
            peer,
            PullRequest(
                url="http://peer.example/c", name="cities", pull_options=AcceptOptions(published=True, force=force)
            ),
        )
    )


def test_new_key_signs_what_comes_after_and_others_follow(owner: Node, reader: Node, chain: PeerChain) -> None:
    pull(reader, Publisher.of(owner, chain))
    event = changing(owner).rotate(record_of(owner), now=NOW)
    record = write(owner, "by the new key")

    report = pull(reader, Publisher.of(owner, chain))

    assert (report.new_blocks, report.warnings) == (1, ())
    assert record_of(reader).head == record.head
    assert record_of(reader).pinned_key == event.new_key == KeyLogs(reader.store).get_history(chain.id).current_key
    assert event.new_key != did_key_of(chain.key)
    assert owner.verifier.verify(record, on_progress=print).problem == ""
    assert reader.verifier.verify(record_of(reader), on_progress=print).problem == ""
    assert reader.trust.stand(record_of(reader)).decision.accepted


def test_rotated_dataset_is_taken_at_first_contact_with_its_log_and_not_without(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    changing(owner).rotate(record_of(owner), now=NOW)
    write(owner, "by the new key")

    with pytest.raises(ProposalRejectedError, match="HEAD-4"):
        pull(reader, Publisher.of(owner, chain, key_events=()))
    assert reader.store.list_datasets() == ()
    assert KeyLogs(reader.store).read(chain.id).kept == 0
    pull(reader, Publisher.of(owner, chain))

    assert KeyLogs(reader.store).get_history(chain.id) == KeyLogs(owner.store).get_history(chain.id)


def test_rotation_alone_is_learned_without_a_new_block(owner: Node, reader: Node, chain: PeerChain) -> None:
    pull(reader, Publisher.of(owner, chain))
    event = changing(owner).rotate(record_of(owner), now=NOW)

    assert pull(reader, Publisher.of(owner, chain)).new_blocks == 0
    assert record_of(reader).pinned_key == event.new_key


def test_change_of_key_that_reaches_back_over_signed_blocks_is_rejected_key_23(reader: Node, chain: PeerChain) -> None:
    """A liar's second history, or a thief's: no key signs two blocks of one number, so that nothing would be proved."""
    pull(reader, OfferingPeer(chain))
    log = KeyLog(chain.key).rotate(NEW_KEY, 3)
    lie = chain.up_to(2).copy(key=NEW_KEY, identity=chain.id)
    for text in ("one", "two", "three"):
        lie.add(SetInfo(description=text))
    before = record_of(reader)

    with pytest.raises(ProposalRejectedError, match="KEY-23 change-is-ahead-of-what-is-signed"):
        pull(reader, OfferingPeer(lie, key_events=log.raws))
    Hearsay(reader.store, reader.clock).accept(read_item(ItemKind.KEY_EVENT, log.raws[0]))

    assert record_of(reader) == before
    assert KeyLogs(reader.store).read(chain.id).kept == 0
    assert reader.verifier.verify(before, on_progress=print).is_valid
    longer = chain.copy().add(SetInfo(description="goes on"))
    assert pull(reader, OfferingPeer(longer)).new_blocks == 1
    # A recovery behind it says what becomes of such blocks.
    rotated = KeyLog(chain.key).prepare().rotate(NEW_KEY, 3)
    taken_back = rotated.recover(OTHER_KEY, 5, stolen_from=3, keeps=longer.head.hash)
    KeyLogs(reader.store).learn(chain.id, taken_back.raws, now=NOW)
    assert record_of(reader).pinned_key == did_key_of(OTHER_KEY)


def test_old_key_signs_nothing_new_and_a_peer_that_hides_the_rotation_is_doubted(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    changing(owner).rotate(record_of(owner), now=NOW)
    pull(reader, Publisher.of(owner, chain))
    before = record_of(reader)

    with pytest.raises(ProposalRejectedError, match="KEY-5 head-is-by-the-key-in-force"):
        pull(reader, OfferingPeer(chain))
    (doubt,) = pull(reader, OfferingPeer(chain.up_to(2))).warnings

    assert "KEY-15" in doubt
    assert record_of(reader) == before


def test_change_that_somebody_overtakes_changes_nothing(owner: Node) -> None:
    stale = record_of(owner)
    writer = ChainWriter.continue_chain(owner.store, owner.keys, stale.id)
    writer.add(SetInfo(description="with the old key"), system_time=NOW)
    changing(owner).rotate(stale, now=NOW)
    with pytest.raises(KeyLogMovedError):
        writer.commit(signed_at=NOW, objects=owner.objects, staged={})
    assert record_of(owner).head == stale.head
    write(owner, "one block more")
    known = KeyLogs(owner.store).read(stale.id)
    late = KeyLogs(owner.store).change_of(known.history, (b"event",), known.kept, NOW)

    with pytest.raises(HeadMovedError):
        owner.store.add_key_events(replace(late, expected_head=stale.head.hash))
    with pytest.raises(KeyLogMovedError):
        owner.store.add_key_events(replace(late, known=0))

    assert KeyLogs(owner.store).read(stale.id) == known
    assert changing(owner).rotate(stale, now=NOW).first_sequence_number == record_of(owner).head.sequence_number + 1
    write(owner, "and it goes on")


def test_crash_before_the_event_is_kept_leaves_the_old_key_in_force(
    owner: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(owner)

    def crash(_change: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(owner.store, "add_key_events", crash)
        with pytest.raises(KeyboardInterrupt):
            changing(owner).rotate(record, now=NOW)

    assert KeyLogs(owner.store).get_history(record.id).events == ()
    assert owner.keys.find_last_key_event(record.id) is None
    assert write(owner, "with the old key").head.sequence_number == record.head.sequence_number + 1
    assert changing(owner).rotate(record, now=NOW).index == 0


def test_crash_after_the_event_is_kept_leaves_the_new_key_in_force(
    owner: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(owner.keys, "note_key_event", crash)
        with pytest.raises(KeyboardInterrupt):
            changing(owner).rotate(record_of(owner), now=NOW)

    history = KeyLogs(owner.store).get_history(record_of(owner).id)
    assert len(history.events) == 1
    signed = owner.store.find_signed_head(record_of(owner).id)
    assert signed is not None
    assert decode_signed_head(signed.raw).signer == history.current_key
    write(owner, "with the new key")
    assert owner.verifier.verify(record_of(owner), on_progress=print).problem == ""


def test_home_without_the_newest_key_event_does_not_sign(owner: Node, chain: PeerChain, tmp_path: Path) -> None:
    changing(owner).rotate(record_of(owner), now=NOW)
    restored = Judge.create(tmp_path / "restored")
    PublisherHome(restored).keep(chain.up_to(2))
    with restored.opened() as store, pytest.raises(RestoredBackupError, match="key event 0"):
        ChainWriter.continue_chain(store, restored.keys, chain.id)


def test_home_without_the_key_in_force_says_what_to_do(owner: Node) -> None:
    event = changing(owner).rotate(record_of(owner), now=NOW)
    assert event.new_key is not None
    owner.keys.delete_signing_key(event.new_key)
    with pytest.raises(SigningKeyLostError, match="key recover"):
        write(owner, "without a key")


def test_forged_rotation_is_rejected_and_names_its_rule(owner: Node, reader: Node, chain: PeerChain) -> None:
    pull(reader, Publisher.of(owner, chain))
    log = KeyLog(chain.key).rotate(OTHER_KEY, 3)
    forged = KeyLog(OTHER_KEY).rotate(NEW_KEY, 3)
    garbled = (log.raws[0][:-1] + b"x",)
    for events, rule in ((forged.raws, "KEY-2"), (garbled, "SIG-"), (log.raws * 2, "KEY-3")):
        with pytest.raises((ProposalRejectedError, FrozenDatasetError)) as caught:
            pull(reader, Publisher.of(owner, chain, key_events=events))
        assert rule in caught.value.rule
        assert isinstance(caught.value, ProposalRejectedError)
        assert caught.value.report["source"] == "http://peer.example/c"
    assert KeyLogs(reader.store).read(chain.id).kept == 0


def test_contradicting_rotations_freeze_until_the_recovery_key_speaks(
    prepared: Node, reader: Node, chain: PeerChain
) -> None:
    pull(reader, Publisher.of(prepared, chain))
    log = KeyLog(chain.key, raws=KeyLogs(prepared.store).documents_about(chain.id))
    pull(reader, Publisher.of(prepared, chain, key_events=log.rotate(OTHER_KEY, 3).raws))
    changing(prepared).rotate(record_of(prepared), now=NOW)
    with pytest.raises(FrozenDatasetError, match="recovery key"):
        pull(reader, Publisher.of(prepared, chain))

    changing(prepared).recover(
        record_of(prepared), PrivateKey(RECOVERY_KEY), stolen_from=3, next_recovery_key=None, now=NOW
    )
    write(prepared, "after the theft")

    assert pull(reader, Publisher.of(prepared, chain)).new_blocks == 1
    assert KeyLogs(reader.store).get_history(chain.id) == KeyLogs(prepared.store).get_history(chain.id)


def thieves_chain(chain: PeerChain) -> PeerChain:
    return chain.up_to(2).add(SetInfo(description="by a thief")).add(SetInfo(description="and another"))


def test_blocks_of_a_thief_are_given_up_and_replaced_where_the_user_says_so(
    prepared: Node, reader: Node, chain: PeerChain
) -> None:
    log = KeyLogs(prepared.store).documents_about(chain.id)
    stolen = thieves_chain(chain)
    pull(reader, OfferingPeer(stolen, key_events=log))
    assert record_of(reader).head == stolen.head
    changing(prepared).recover(
        record_of(prepared), PrivateKey(RECOVERY_KEY), stolen_from=2, next_recovery_key=did_key_of(NEW_KEY), now=NOW
    )
    record = write(prepared, "by the owner")

    with pytest.raises(ProposalRejectedError):
        pull(reader, Publisher.of(prepared, chain))
    shown = KeyReports(reader.store).describe(record_of(reader))
    assert (shown["disownedFrom"], shown["recoveryKey"]) == (3, str(did_key_of(NEW_KEY)))
    assert [block["block"] for block in shown["stolen"][0]["blocks"]] == [2]
    with pytest.raises(ProposalRejectedError):
        pull(reader, OfferingPeer(stolen.add(SetInfo(description="more")), key_events=log))
    assert pull(reader, Publisher.of(prepared, chain), force=True).new_blocks == 1

    assert record_of(reader).head == record.head
    assert KeyReports(reader.store).describe(record_of(reader))["disownedFrom"] is None
    assert len(reader.store.list_replaced_histories(chain.id)) == 1
    (doubt,) = KeyReports(reader.store).list_doubts(record_of(reader))
    assert "blocks 2 to 2" in doubt


def test_honest_readers_of_the_kept_history_follow_the_recovery_without_help(
    prepared: Node, reader: Node, chain: PeerChain
) -> None:
    pull(reader, Publisher.of(prepared, chain))
    thief = KeyLog(chain.key, raws=KeyLogs(prepared.store).documents_about(chain.id)).rotate(OTHER_KEY, 3)
    pull(reader, Publisher.of(prepared, chain, key_events=thief.raws))
    assert record_of(reader).pinned_key == did_key_of(OTHER_KEY)
    event = changing(prepared).recover(
        record_of(prepared), PrivateKey(RECOVERY_KEY), stolen_from=3, next_recovery_key=None, now=NOW
    )
    write(prepared, "by the owner")

    assert pull(reader, Publisher.of(prepared, chain)).new_blocks == 1
    assert record_of(reader).pinned_key == event.new_key
    assert [each.new_key for each in KeyLogs(reader.store).list_outranked(chain.id)] == [did_key_of(OTHER_KEY)]
    assert any(
        "KEY-15" in doubt for doubt in pull(reader, OfferingPeer(chain.up_to(2), key_events=thief.raws)).warnings
    )


def test_recovery_needs_the_key_that_was_named_and_a_block_of_the_chain(prepared: Node) -> None:
    record, use = record_of(prepared), changing(prepared)
    for key, number, message in ((OTHER_KEY, 3, "not the recovery key"), (RECOVERY_KEY, 9, "name one of them")):
        with pytest.raises(UsageError, match=message):
            use.recover(record, PrivateKey(key), stolen_from=number, next_recovery_key=None, now=NOW)
    with pytest.raises(UsageError, match="already"):
        use.prepare(record, did_key_of(NEW_KEY), signed_with=None, now=NOW)
    use.prepare(record, did_key_of(NEW_KEY), signed_with=PrivateKey(RECOVERY_KEY), now=NOW)
    assert KeyLogs(prepared.store).get_history(record.id).recovery_key == did_key_of(NEW_KEY)


def test_keys_of_others_are_not_changed(owner: Node, reader: Node, chain: PeerChain) -> None:
    pull(reader, Publisher.of(owner, chain))
    with pytest.raises(UsageError, match="not this node's own"):
        changing(reader).rotate(record_of(reader), now=NOW)


def test_signature_of_a_block_by_a_later_key_is_judged_at_its_number(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    changing(owner).rotate(record_of(owner), now=NOW)
    write(owner, "by the new key")
    peer = Publisher.of(owner, chain)
    last = peer.chain.blocks[-1]
    peer.chain.signatures[-1] = sign_block(chain.key, chain.id, last.sequence_number, last.hash)
    with pytest.raises(ProposalRejectedError, match="KEY-5 block-is-by-the-key-in-force"):
        pull(reader, peer)


@pytest.mark.parametrize("action", ["prepare", "recover"])
def test_recovery_key_that_was_named_stays_in_its_file_whatever_ends_the_command_behind_it_key_18(
    prepared: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """KEY-18: its file was removed by a Ctrl-C behind the commit, and nobody could ever take the dataset back."""
    stick, made = tmp_path / "stick.pem", tmp_path / "made.pem"
    keep_recovery_key(prepared.home.folder, stick, record_of(prepared).id, generate=lambda: PrivateKey(RECOVERY_KEY))
    words = ["--to", str(made)] if action == "prepare" else ["--stolen-from", "1", "--next", str(made)]

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("odf_node.adapters.key_files.KeyFiles.note_key_event", interrupt)
        with suppress(KeyboardInterrupt, SystemExit):
            main(["--home", str(prepared.home.folder.path), "key", action, "cities", "--with", str(stick), *words])

    history = KeyLogs(prepared.store).get_history(record_of(prepared).id)
    assert len(history.events) == 2
    assert history.recovery_key == did_key_of(read_recovery_key(made).seed)
    event = changing(prepared).recover(
        record_of(prepared), read_recovery_key(made), stolen_from=3, next_recovery_key=None, now=NOW
    )
    assert event.index == 2


def test_recovery_key_of_a_command_that_failed_is_named_by_the_same_command_key_18(
    owner: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """KEY-18: the file stays, `key show` tells of it, and no second key is made; then nothing waits any more."""
    made, dataset_id = tmp_path / "made.pem", record_of(owner).id
    words = ["--home", str(owner.home.folder.path), "key"]

    def fail(*_arguments: object) -> None:
        raise KeyLogMovedError(dataset_id, 0, 1)

    with monkeypatch.context() as broken:
        broken.setattr("odf_node.store.MetadataStore.add_key_events", fail)
        assert main([*words, "prepare", "cities", "--to", str(made)]) == 5
    key = did_key_of(read_recovery_key(made).seed)
    capsys.readouterr()
    assert main([*words, "show", "cities"]) == 0
    assert f"{key} to {made} was ended" in capsys.readouterr().out

    assert main([*words, "prepare", "cities", "--to", str(made)]) == 0

    assert KeyLogs(owner.store).get_history(dataset_id).recovery_keys == (key,)
    assert find_unfinished_key(dataset_id) is None
    capsys.readouterr()
    assert main([*words, "show", "cities"]) == 0
    assert "was ended" not in capsys.readouterr().out
    assert main([*words, "prepare", "cities", "--to", str(made)]) == 2


def chain_of_others() -> DatasetId:
    return DatasetId(did_key_of(NEW_KEY).public_key)


def test_recovery_key_that_somebody_else_laid_there_is_not_taken_key_18(
    owner: Node, tmp_path: Path, marks: Path
) -> None:
    """KEY-18: whoever sold the stick would have the key; the machine remembers the keys that it wrote, not places."""
    stick, dataset_id = tmp_path / "stick.pem", record_of(owner).id
    ours = keep_recovery_key(owner.home.folder, stick, dataset_id, generate=owner.keys.generate)
    assert keep_recovery_key(owner.home.folder, stick, dataset_id, generate=owner.keys.generate) == ours
    theirs = tmp_path / "theirs.pem"
    keep_recovery_key(owner.home.folder, theirs, chain_of_others(), generate=owner.keys.generate)
    theirs.replace(stick)
    with pytest.raises(UsageError, match="exists already"):
        keep_recovery_key(owner.home.folder, stick, dataset_id, generate=owner.keys.generate)
    for path in marks.iterdir():
        path.unlink()
    with pytest.raises(UsageError, match="exists already"):
        keep_recovery_key(owner.home.folder, stick, dataset_id, generate=owner.keys.generate)


def test_rejection_that_is_known_before_leaves_no_file_of_a_recovery_key(prepared: Node, tmp_path: Path) -> None:
    made, stick = tmp_path / "made.pem", tmp_path / "stick.pem"
    keep_recovery_key(prepared.home.folder, stick, chain_of_others(), generate=lambda: PrivateKey(OTHER_KEY))
    words = ["--home", str(prepared.home.folder.path), "key"]
    recover = ["recover", "cities", "--with", str(stick), "--stolen-from", "1", "--next", str(made)]
    for command in (["prepare", "cities", "--to", str(made)], recover):
        assert main([*words, *command]) == 2
        assert not made.exists()


def test_recovery_that_is_asked_for_again_is_not_made_twice(prepared: Node) -> None:
    """Whoever was ended behind the commit asks again; a second window over the same blocks would break KEY-10."""
    use, key = changing(prepared), PrivateKey(RECOVERY_KEY)
    first = use.recover(record_of(prepared), key, stolen_from=2, next_recovery_key=None, now=NOW)
    again = use.recover(record_of(prepared), key, stolen_from=2, next_recovery_key=None, now=LATER)
    assert again == first
    later = use.recover(record_of(prepared), key, stolen_from=3, next_recovery_key=None, now=LATER)
    assert later.index == first.index + 1


def test_head_that_the_old_key_signs_while_it_is_changed_does_not_count_key_17(
    owner: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEY-17: a renewal read the old key, another process rotated, and the old key had the last word on the head."""
    real, record = owner.keys.find_last_signed, record_of(owner)

    def rotate_meanwhile(dataset_id: Any) -> Any:
        with monkeypatch.context() as calm:
            calm.setattr(owner.keys, "find_last_signed", real)
            if not KeyLogs(owner.store).get_history(dataset_id).events:
                changing(owner).rotate(record, now=NOW)
        return real(dataset_id)

    with monkeypatch.context() as busy:
        busy.setattr(owner.keys, "find_last_signed", rotate_meanwhile)
        with pytest.raises(KeyLogMovedError):
            renew_head(owner.store, owner.keys, record, now=LATER, valid_s=60)

    def find_signer() -> Any:
        signed = owner.store.find_signed_head(record.id)
        return None if signed is None else decode_signed_head(signed.raw).signer

    current = KeyLogs(owner.store).get_history(record.id).current_key
    assert find_signer() == current
    renew_head(owner.store, owner.keys, record, now=LATER, valid_s=60)
    assert find_signer() == current


@pytest.mark.parametrize("is_stolen", [False, True], ids=["retired", "stolen"])
def test_old_key_does_not_renew_a_head_that_a_later_key_has_signed_head_10(
    prepared: Node, reader: Node, chain: PeerChain, is_stolen: bool
) -> None:
    """HEAD-10: who kept a retired or stolen key gave the newest block an end of his own, and hid what came after."""
    pull(reader, Publisher.of(prepared, chain))
    if is_stolen:
        changing(prepared).recover(
            record_of(prepared), PrivateKey(RECOVERY_KEY), stolen_from=2, next_recovery_key=None, now=NOW
        )
    else:
        changing(prepared).rotate(record_of(prepared), now=NOW)
    pull(reader, Publisher.of(prepared, chain))
    record, freshness = record_of(reader), HeadsFreshness(reader.store)
    renew_head(prepared.store, prepared.keys, record_of(prepared), now=SOON, valid_s=60)
    honest = prepared.store.find_signed_head(record.id)
    assert honest is not None
    freshness.learn(honest.raw, record.id, source="owner", now=SOON)
    assert reader.store.find_signed_head(record.id) == honest

    late = sign_head(
        chain.key, dataset_id=record.id, sequence_number=record.head.sequence_number, block_hash=record.head.hash,
        time=LATER, expires=Timestamp(LATER.seconds + 10**9),
    )  # fmt: skip
    freshness.learn(late, record.id, source="thief", now=LATER)

    assert reader.store.find_signed_head(record.id) == honest


def test_head_of_a_clock_that_was_far_ahead_gives_way_to_one_by_the_right_clock_head_10(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    """HEAD-10: the head of ten years ahead stayed the newest word, and nobody would have missed newer blocks."""
    pull(reader, Publisher.of(owner, chain))
    record, freshness = record_of(reader), HeadsFreshness(reader.store)

    def hear(time: Timestamp, *, now: Timestamp) -> Timestamp:
        renew_head(owner.store, owner.keys, record_of(owner), now=time, valid_s=60)
        reported = owner.store.find_signed_head(record.id)
        assert reported is not None
        freshness.learn(reported.raw, record.id, source="owner", now=now)
        kept = reader.store.find_signed_head(record.id)
        assert kept is not None
        return decode_signed_head(kept.raw).time

    ahead = Timestamp(NOW.seconds + 10 * 365 * 86_400)
    assert hear(ahead, now=ahead) == ahead
    assert hear(SOON, now=SOON) == SOON
    assert hear(LATER, now=LATER) == LATER
    assert hear(SOON, now=LATER) == LATER
    assert hear(ahead, now=LATER) == LATER


def test_recovery_key_is_written_once_privately_and_never_in_the_home(owner: Node, tmp_path: Path) -> None:
    key, place = owner.keys.generate(), tmp_path / "recovery.pem"
    keep = partial(keep_recovery_key, owner.home.folder, dataset_id=record_of(owner).id, generate=lambda: key)
    assert keep(place) == key
    assert oct(place.stat().st_mode & 0o777) == "0o600"
    assert read_recovery_key(place) == key
    forget_unfinished_key(record_of(owner).id, key)
    with pytest.raises(UsageError, match="exists already"):
        keep(place)
    inside = owner.home.folder.path / "keys" / "recovery.pem"
    with pytest.raises(UsageError, match="own folder"):
        keep(inside)
    with pytest.raises(UsageError, match="no such folder"):
        keep(tmp_path / "absent" / "recovery.pem")
    os.chmod(place, 0o644)  # noqa: PTH101 - what a careless copy does
    with pytest.raises(UnsafeKeyFileError):
        read_recovery_key(place)
