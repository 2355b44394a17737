"""A key log goes wherever the dataset goes: served, pushed, exported, gossiped, restored, in bundles of evidence."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_gossip.gossiping import HomeReader
from odf_gossip.hearsay import Hearsay
from odf_gossip_protocol.item import ItemKind, read_item
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.key_backup import back_up_keys, restore_keys
from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.adapters.layout_folder import LayoutFolder
from odf_node.adapters.peer_addresses import open_peer
from odf_node.composition import Node
from odf_node.daemon.late_receivers import LatePushJudge
from odf_node.errors import ForeignKeyError, ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.keys.changing import KeyChanging
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.ports.keys import PrivateKey
from odf_node.ports.progress import Silence
from odf_node.ports.pushes import PushedHead
from odf_node.records.datasets import Subscription
from odf_node.records.errors import SigningKeyLostError
from odf_node.trust.recovery import RecoveryReport
from support.exchange_nodes import TOKEN, TestNode
from support.key_logs import RECOVERY_KEY, KeyLog
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.own_datasets import record_of, write
from support.signing import NEW_KEY, did_key_of


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path, slices=1)


@pytest.fixture
def owner(tmp_path: Path, chain: PeerChain) -> Iterator[Node]:
    """Has a recovery key, rotated once, and one block by the new key."""
    judge = Judge.create(tmp_path / "owner")
    PublisherHome(judge).keep(chain)
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    use = KeyChanging(node.home)
    use.prepare(record_of(node), did_key_of(RECOVERY_KEY), signed_with=None, now=NOW)
    use.rotate(record_of(node), now=NOW)
    write(node, "by the new key")
    yield node
    node.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Node]:
    judge = Judge.create(tmp_path / "reader")
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


def served(node: Node) -> TestNode:
    return TestNode(node.home, node.store, node.objects, LatePushJudge(node))  # type: ignore[arg-type]


async def pull(node: Node, url: str) -> Any:
    async with await open_peer(url, ClientSettings()) as peer:
        return await node.taking.take(peer, PullRequest(url=url, name="cities"))


def pull_from(source: Node, reader: Node) -> Any:
    async def run() -> Any:
        async with served(source).serving() as address:
            return await pull(reader, f"{address}/cities")

    return asyncio.run(run())


def keys_of(node: Node, chain: PeerChain) -> Any:
    return KeyLogs(node.store).get_history(chain.id)


def test_rotated_dataset_is_pulled_over_http_and_served_on(
    owner: Node, reader: Node, chain: PeerChain, tmp_path: Path
) -> None:
    third = Node(HomeFolder(Judge.create(tmp_path / "third").home.path), FixedClock(NOW))

    async def run() -> None:
        async with served(owner).serving() as address:
            await pull(reader, f"{address}/cities")
        async with served(reader).serving() as address:
            await pull(third, f"{address}/cities")

    asyncio.run(run())
    assert keys_of(third, chain) == keys_of(reader, chain) == keys_of(owner, chain)
    assert record_of(third).pinned_key == keys_of(owner, chain).current_key
    third.close()


def test_push_brings_the_log(owner: Node, reader: Node, chain: PeerChain) -> None:
    receiver = served(reader)
    receiver.put_token()
    record = record_of(owner)
    signed = owner.store.find_signed_head(record.id)
    assert signed is not None
    proposed = PushedHead(
        dataset_id=record.id,
        head=record.head,
        signed_head=signed.raw,
        key_events=KeyLogs(owner.store).documents_about(record.id),
    )

    async def run() -> None:
        async with receiver.serving() as address:
            await push_dataset(
                f"{address}/cities",
                proposed,
                store=owner.store,
                objects=owner.objects,
                settings=ClientSettings(token=TOKEN),
            )

    asyncio.run(run())
    assert record_of(reader).head == record.head
    assert keys_of(reader, chain) == keys_of(owner, chain)


def test_export_holds_the_log_and_follows_a_key_that_changes_without_a_block(
    owner: Node, reader: Node, chain: PeerChain, tmp_path: Path
) -> None:
    place = tmp_path / "cities"
    asyncio.run(owner.exporting.export(record_of(owner), LayoutFolder(place), Silence()))
    asyncio.run(pull(reader, place.as_uri()))
    assert keys_of(reader, chain) == keys_of(owner, chain)
    KeyChanging(owner.home).rotate(record_of(owner), now=NOW)

    asyncio.run(owner.exporting.export(record_of(owner), LayoutFolder(place), Silence()))
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    asyncio.run(owner.exporting.export(record_of(owner), LayoutFolder(place), Silence()))

    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    asyncio.run(pull(reader, place.as_uri()))
    assert keys_of(reader, chain) == keys_of(owner, chain)
    assert len(keys_of(reader, chain).events) == 3


def test_dataset_that_never_changed_its_key_is_exported_without_a_log(tmp_path: Path, chain: PeerChain) -> None:
    judge = Judge.create(tmp_path / "plain")
    PublisherHome(judge).keep(chain)
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    asyncio.run(node.exporting.export(record_of(node), LayoutFolder(tmp_path / "c"), Silence()))
    assert not (tmp_path / "c" / "key-log").exists()
    node.close()


def test_key_log_outlives_the_dataset_that_is_deleted_and_taken_again(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    async def run() -> None:
        async with served(owner).serving() as address:
            await pull(reader, f"{address}/cities")
            reader.deletion.delete(record_of(reader))
            await pull(reader, f"{address}/cities")

    asyncio.run(run())
    assert keys_of(reader, chain) == keys_of(owner, chain)


@pytest.fixture
def restored(tmp_path: Path, chain: PeerChain) -> Iterator[Node]:
    """A backup of the owner's home and keys from before the rotation, on a machine without its memory."""
    old = Judge.create(tmp_path / "restored")
    PublisherHome(old).keep(chain)
    node = Node(HomeFolder(old.home.path), FixedClock(NOW))
    yield node
    node.close()


def recover_from(owner: Node, node: Node, *, lost_keys: bool = False) -> None:
    async def run() -> None:
        async with (
            served(owner).serving() as address,
            await open_peer(f"{address}/cities", ClientSettings()) as peer,
        ):
            await RecoveryReport(node.home).recover(record_of(node), peer, now=NOW, lost_keys=lost_keys)

    asyncio.run(run())


def test_restored_backup_learns_no_change_to_a_key_that_is_not_here_key_20(
    owner: Node, restored: Node, chain: PeerChain
) -> None:
    """KEY-20: a thief's rotation, and his blocks behind it, were taken for the owner's from whoever showed them."""
    before = record_of(restored)
    with pytest.raises(ForeignKeyError, match="event 1, which handed the dataset to did:key") as caught:
        recover_from(owner, restored)
    for advice in ("restore --keys", "--lost-keys", "key recover"):
        assert advice in str(caught.value)
    assert (record_of(restored), keys_of(restored, chain).events) == (before, ())


def test_restored_backup_takes_key_events_back_whose_keys_are_here_key_20(
    owner: Node, restored: Node, reader: Node, chain: PeerChain, tmp_path: Path
) -> None:
    """KEY-20: who has the key made what leads to it; the identity goes on, on another machine."""
    back_up_keys(owner.home.folder, tmp_path / "keys.tar")
    ours, theirs = ({path.name for path in node.home.folder.keys.rglob("*.pem")} for node in (owner, restored))
    assert restore_keys(restored.home.folder, tmp_path / "keys.tar") == len(ours - theirs)
    recover_from(owner, restored)
    assert (record_of(restored).head, keys_of(restored, chain)) == (record_of(owner).head, keys_of(owner, chain))
    write(restored, "on another machine")
    pull_from(restored, reader)
    assert record_of(reader).head == record_of(restored).head


def test_machine_that_made_the_change_takes_it_back_without_its_key_key_20(
    owner: Node, restored: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """KEY-19, KEY-20: what this machine remembers to have made needs nobody's word."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    last = keys_of(owner, chain).events[-1]
    restored.keys.note_key_event(chain.id, last.index, last.hash)
    recover_from(owner, restored)
    assert keys_of(restored, chain) == keys_of(owner, chain)


def test_owner_whose_newer_key_is_lost_goes_on_by_the_recovery_key_key_20(
    owner: Node, restored: Node, reader: Node, chain: PeerChain
) -> None:
    """KEY-20: by the owner's word; the recovery stands behind the change of key, without which no reader could verify
    the block that the lost key signed."""
    pull_from(owner, reader)
    recover_from(owner, restored, lost_keys=True)
    with pytest.raises(SigningKeyLostError, match="key recover"):
        write(restored, "without its key")
    KeyChanging(restored.home).recover(
        record_of(restored), PrivateKey(RECOVERY_KEY), stolen_from=3, next_recovery_key=None, now=NOW
    )
    write(restored, "by a new key")
    assert restored.verifier.verify(record_of(restored), on_progress=print).problem == ""
    pull_from(restored, reader)
    assert record_of(reader).head == record_of(restored).head
    assert reader.verifier.verify(record_of(reader), on_progress=print).problem == ""


def test_thief_who_rotated_is_still_outranked_where_no_block_of_his_is_held(
    restored: Node, reader: Node, chain: PeerChain
) -> None:
    """KEY-9: the owner's recovery begins where the thief's rotation did, also if the home was made to learn it."""
    use = KeyChanging(restored.home)
    use.prepare(record_of(restored), did_key_of(RECOVERY_KEY), signed_with=None, now=NOW)
    logs = KeyLogs(restored.store)
    stolen = KeyLog(chain.key, raws=logs.documents_about(chain.id)).rotate(NEW_KEY, len(chain.blocks))
    logs.learn(chain.id, stolen.raws, now=NOW)
    event = use.recover(record_of(restored), PrivateKey(RECOVERY_KEY), stolen_from=2, next_recovery_key=None, now=NOW)
    assert (event.index, did_key_of(NEW_KEY) in {p.key for p in keys_of(restored, chain).periods}) == (1, False)
    write(restored, "by the owner")
    pull_from(restored, reader)
    assert record_of(reader).head == record_of(restored).head


def test_old_backup_that_signs_by_a_key_that_was_changed_is_rejected_by_readers(
    owner: Node, restored: Node, reader: Node, chain: PeerChain
) -> None:
    """HEAD-8, KEY-5: first the peer went back, then its key is not in force; what readers hold stays."""
    pull_from(owner, reader)
    held = record_of(reader).head
    assert any("HEAD-8" in doubt for doubt in pull_from(restored, reader).warnings)
    write(restored, "by the old key")
    with pytest.raises(ProposalRejectedError, match="KEY-5 head-is-by-the-key-in-force"):
        pull_from(restored, reader)
    assert record_of(reader).head == held
    assert Disputes(reader.store).find_obstacle(chain.id) is None


def test_gossip_teaches_keys_of_what_matters_here_and_nothing_to_the_owner(
    owner: Node, reader: Node, chain: PeerChain
) -> None:
    items = [read_item(ItemKind.KEY_EVENT, raw) for raw in KeyLogs(owner.store).documents_about(chain.id)]
    reported = HomeReader(owner.store, (), frozenset, lambda: True, lambda: None).read().news
    assert [item.raw for item in reported if item.kind is ItemKind.KEY_EVENT][: len(items)] == [i.raw for i in items]
    hearsay = Hearsay(reader.store, FixedClock(NOW))
    hearsay.accept(items[0])
    assert keys_of(reader, chain).events == ()
    reader.store.put_subscription(Subscription(dataset_id=chain.id, name="cities", url=None, since=NOW))
    for item in (items[1], *items):
        hearsay.accept(item)
    assert keys_of(reader, chain) == keys_of(owner, chain)

    log = KeyLog(chain.key, raws=KeyLogs(owner.store).documents_about(chain.id))
    key = owner.keys.find_signing_key(keys_of(owner, chain).current_key)
    assert key is not None
    stolen = replace(log, keys=(key.seed,)).rotate(NEW_KEY, 9)
    owners = Hearsay(owner.store, FixedClock(NOW))
    for raw in stolen.raws:
        owners.accept(read_item(ItemKind.KEY_EVENT, raw))

    assert keys_of(owner, chain).events == log.history.events
    (entry,) = [entry for entry in owner.store.iter_audit(limit=9) if "another signer" in entry.command]
    assert "this key is stolen" in entry.detail
