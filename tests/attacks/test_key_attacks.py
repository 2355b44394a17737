"""Named attacks with keys, against a real node over real sockets (``spec/threats.md``, ``spec/extensions/keys.md``).

The node holds a chain whose owner named a recovery key and rotated once. After each attack it holds the same to the
bit, speaks for the same keys, still serves others, and what it reports names the peer.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odf_node.acceptance.histories import lay_side_by_side
from odf_node.acceptance.offers import AcceptOptions
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.trust.bundles import Bundles
from odf_protocol.errors import OdfError
from odf_protocol.events import SetInfo
from odf_protocol.judging import judge
from odf_protocol.key_events import KeyChange, sign_event
from support.exchange_nodes import TestNode
from support.hostile_peer import endless, hostile_peer
from support.key_logs import RECOVERY_KEY, KeyLog
from support.lying_peer import JSON, Lie
from support.offers import NOON, NOW, Judge, PeerChain, root_chain
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, OTHER_KEY, dataset_of, did_key_of

QUICK = ClientSettings(attempts=2, backoff_s=0.001)
LAST = 3
"""Number of the newest block that the victim holds, and of the first by the rotated key."""
LOG = KeyLog(DATASET_KEY).prepare().rotate(NEW_KEY, LAST)


def by(chain: PeerChain, key: bytes, text: str = "more") -> PeerChain:
    """Add a block with a signature and a head by any key."""
    return chain.copy(key=key, identity=dataset_of(DATASET_KEY)).add(SetInfo(description=text))


def forged(key: bytes, change: KeyChange = KeyChange.ROTATION, **fields: Any) -> bytes:
    """The next event of the log, by a key that may not make it."""
    history = LOG.history
    values: dict[str, Any] = {"new_key": did_key_of(OTHER_KEY), "first_sequence_number": 4}
    return sign_event(key, change, LOG.id, index=2, previous=history.last_event, time=NOON, **(values | fields))


def stolen_rotation(chain: PeerChain) -> Lie:
    """A thief of the old key rotates in place of the owner, who had done it already."""
    other = KeyLog(DATASET_KEY, raws=LOG.raws[:1]).rotate(OTHER_KEY, LAST)
    return Lie(by(chain, OTHER_KEY), key_events=other.raws, says="KEY-7")


def recovery_by(key: bytes, chain: PeerChain) -> bytes:
    return forged(key, KeyChange.RECOVERY, stolen_from=1, keeps=chain.head.hash)


ATTACKS: dict[str, Callable[[PeerChain], Lie]] = {
    "head-by-the-old-key-after-its-rotation": lambda c: Lie(by(c, DATASET_KEY), key_events=LOG.raws, says="KEY-5"),
    "block-by-the-old-key-under-a-new-head": lambda c: Lie(
        by(c, DATASET_KEY), key_events=LOG.raws, signed_head=by(c, DATASET_KEY).signed_head(key=NEW_KEY), says="KEY-5"
    ),
    "head-by-the-recovery-key": lambda c: Lie(by(c, RECOVERY_KEY), key_events=LOG.raws, says="KEY-5"),
    "head-by-a-key-that-no-event-names": lambda c: Lie(by(c, OTHER_KEY), key_events=LOG.raws, says="KEY-5"),
    "hidden-rotation-and-a-head-by-the-old-key": lambda c: Lie(
        by(c, DATASET_KEY), key_events=LOG.raws[:1], says="KEY-5"
    ),
    "hidden-key-log": lambda c: Lie(c, ends="doubted", says="KEY-15"),
    "hidden-key-event": lambda c: Lie(c, key_events=LOG.raws[:1], ends="doubted", says="KEY-15"),
    "forged-rotation": lambda c: Lie(by(c, OTHER_KEY), key_events=(*LOG.raws, forged(OTHER_KEY)), says="KEY-4"),
    "rotation-by-the-old-key": lambda c: Lie(
        by(c, OTHER_KEY), key_events=(*LOG.raws, forged(DATASET_KEY)), says="KEY-4"
    ),
    "rotation-by-the-recovery-key": lambda c: Lie(
        by(c, OTHER_KEY), key_events=(*LOG.raws, forged(RECOVERY_KEY)), says="KEY-4"
    ),
    "recovery-by-the-key-in-force": lambda c: Lie(
        by(c, OTHER_KEY), key_events=(*LOG.raws, recovery_by(NEW_KEY, c)), says="KEY-9"
    ),
    "recovery-key-replaced-by-the-key-in-force": lambda c: Lie(
        by(c, NEW_KEY),
        key_events=(
            *LOG.raws,
            forged(
                NEW_KEY,
                KeyChange.RECOVERY_KEY,
                new_key=None,
                first_sequence_number=None,
                recovery_key=did_key_of(OTHER_KEY),
            ),
        ),
        says="KEY-9",
    ),
    "rotation-back-to-an-old-key": lambda c: Lie(
        by(c, DATASET_KEY), key_events=(*LOG.raws, forged(NEW_KEY, new_key=did_key_of(DATASET_KEY))), says="KEY-6"
    ),
    "rotation-that-reaches-back": lambda c: Lie(
        by(c, OTHER_KEY), key_events=(*LOG.raws, forged(NEW_KEY, first_sequence_number=1)), says="KEY-5"
    ),
    "key-log-of-another-dataset": lambda c: Lie(c, key_events=KeyLog(NODE_KEY).rotate(OTHER_KEY, 1).raws, says="KEY-2"),
    "key-log-out-of-order": lambda c: Lie(c, key_events=LOG.raws[::-1], says="KEY-3"),
    "damaged-key-event": lambda c: Lie(c, key_events=(LOG.raws[0], LOG.raws[1][:-1] + b"!"), says="SIG-"),
    "endless-key-log": lambda c: Lie(c, scripts={"/keys": endless(headers=JSON)}, ends="doubted", says="KEY-15"),
    "key-log-of-too-many-events": lambda c: Lie(
        c, scripts={}, key_events=LOG.raws * 501, ends="doubted", says="KEY-15"
    ),
    "contradicting-rotation-by-a-stolen-key": stolen_rotation,
}


@dataclass
class Victim:
    """A node that holds the honest chain up to the first block by the rotated key, and serves it."""

    node: Node
    chain: PeerChain

    def holdings(self) -> Any:
        store = self.node.store
        return (
            [(r.name, r.id, r.head, r.trust, r.pinned_key) for r in store.list_datasets()],
            [(b.raw, b.signature) for b in store.iter_blocks(self.chain.id)],
            KeyLogs(store).read(self.chain.id),
        )


def make_victim(folder: Path) -> Victim:
    judge = Judge.create(folder / "home")
    chain = by(root_chain(folder, slices=1), NEW_KEY, "by the rotated key")
    judge.take(chain.proposal(key_events=LOG.raws), chain.files)
    return Victim(Node(HomeFolder(folder / "home"), FixedClock(NOW)), chain)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = make_victim(tmp_path_factory.mktemp("key-attacks"))
    yield victim
    victim.node.close()


async def pull(node: Node, lie: Lie, *, force: bool = False) -> tuple[Any, str]:
    async with hostile_peer({"": lie}) as peer:
        url = f"{peer.url}/cities"
        try:
            async with await open_peer(url, QUICK) as opened:
                report = await node.taking.take(
                    opened, PullRequest(url=url, name="cities", pull_options=AcceptOptions(published=True, force=force))
                )
        except OdfError as error:
            return error, url
        return report, url


async def still_serves(victim: Victim) -> bool:
    """Ask the victim for its key log as any other node would."""
    served = TestNode(victim.node.home, victim.node.store, victim.node.objects, None)  # type: ignore[arg-type]
    async with served.serving() as address, await open_peer(f"{address}/cities", QUICK) as peer:
        return await peer.list_key_events() == LOG.raws and (await peer.get_head()).head == victim.chain.head


def test_each_attack_has_its_line_in_the_threats() -> None:
    text = (Path(__file__).parents[2] / "spec/threats.md").read_text()
    assert [name for name in ATTACKS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "contradicting-rotation-by-a-stolen-key"])
def test_attack_with_keys_changes_nothing_and_the_node_serves_on(victim: Victim, name: str) -> None:
    lie = ATTACKS[name](victim.chain)
    before = victim.holdings()

    outcome, url = asyncio.run(pull(victim.node, lie))

    assert lie.mistakes == []
    assert victim.holdings() == before
    assert asyncio.run(still_serves(victim))
    if lie.ends == "refused":
        assert isinstance(outcome, ProposalRejectedError), outcome
        assert lie.says in outcome.rule, outcome
        assert outcome.report["source"] == url
    else:
        assert not isinstance(outcome, OdfError), outcome
        assert any(lie.says in warning for warning in outcome.warnings), outcome.warnings
    assert Disputes(victim.node.store).find_obstacle(victim.chain.id) is None


def test_contradicting_rotations_freeze_until_the_recovery_and_are_judged_by_anybody(tmp_path: Path) -> None:
    victim = make_victim(tmp_path)
    store, chain = victim.node.store, victim.chain

    outcome, url = asyncio.run(pull(victim.node, stolen_rotation(chain)))
    assert isinstance(outcome, ProposalRejectedError)
    assert ("KEY-7" in outcome.rule, outcome.report["source"]) == (True, url)
    assert "frozen" in str(Disputes(store).find_obstacle(chain.id))
    assert KeyLogs(store).read(chain.id).history == LOG.history
    record = store.find_dataset(chain.id)
    assert record is not None
    (dispute,) = Disputes(store).list_disputes(chain.id)
    (row,) = lay_side_by_side(store, victim.node.refusals, record, dispute)["rows"]
    assert {str(did_key_of(NEW_KEY)) in row["first"], str(did_key_of(NEW_KEY)) in row["second"]} == {True, False}
    judged = judge(Bundles(store).about_dataset(record))
    assert judged.guilty == ((did_key_of(DATASET_KEY), chain.id),)
    assert any("the key that the dataset began with" in found.says for found in judged.findings)

    back = LOG.recover(NODE_KEY, LAST + 1, stolen_from=LAST, keeps=chain.head.hash)
    outcome, _ = asyncio.run(pull(victim.node, Lie(by(chain, NODE_KEY), key_events=back.raws)))

    assert not isinstance(outcome, OdfError), outcome
    assert outcome.new_blocks == 1
    assert Disputes(store).find_obstacle(chain.id) is None
    record = store.find_dataset(chain.id)
    assert record is not None
    assert record.pinned_key == did_key_of(NODE_KEY)
    judged = judge(Bundles(store).about_dataset(record))
    assert any("declares stolen from block 3" in found.says for found in judged.findings)
    victim.node.close()


def test_stolen_key_says_nothing_after_the_recovery(tmp_path: Path) -> None:
    victim = make_victim(tmp_path)
    chain = victim.chain
    stolen = by(chain, NEW_KEY, "by the thief")
    asyncio.run(pull(victim.node, Lie(stolen, key_events=LOG.raws)))
    back = LOG.recover(NODE_KEY, LAST + 1, stolen_from=LAST, keeps=chain.head.hash)
    owners = by(chain, NODE_KEY, "by the owner")

    unhelped, url = asyncio.run(pull(victim.node, Lie(owners, key_events=back.raws)))
    assert isinstance(unhelped, ProposalRejectedError)
    assert "KEY-14" in unhelped.rule
    helped, _ = asyncio.run(pull(victim.node, Lie(owners, key_events=back.raws), force=True))
    assert not isinstance(helped, OdfError), helped
    before = victim.holdings()
    for log in (LOG.raws, back.raws):
        again, url = asyncio.run(pull(victim.node, Lie(by(stolen, NEW_KEY), key_events=log), force=True))
        assert isinstance(again, ProposalRejectedError)
        assert again.report["source"] == url
    assert victim.holdings() == before
    victim.node.close()
