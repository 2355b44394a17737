"""Copies of others' datasets as sources of roots: frozen, without their files, of another history (ING-43)."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.acceptance.offers import EVERYTHING, AcceptOptions, Subset
from odf_node.adapters.clocks import FixedClock
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.policy import Policy
from odf_protocol.settlements import sign_settlement
from support.command_line import list_kept
from support.offering_peer import OfferingPeer
from support.offers import CITIES, MORE_CITIES, NOW, Judge, PeerChain, root_chain
from support.signing import DATASET_KEY

pytestmark = pytest.mark.usefixtures("light_engines")

FOLLOWER = """
kind: DatasetSnapshot
version: 1
content:
  name: copy
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "dataset:cities"}
      read: {kind: Parquet}
      merge: {kind: Append}
"""


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    return Judge.create(tmp_path / "home").home


@pytest.fixture
def node(home: HomeFolder) -> Iterator[Node]:
    with closing(Node(home, FixedClock(NOW))) as node:
        yield node


def take(
    node: Node, peer: OfferingPeer, pull_options: AcceptOptions = EVERYTHING, policy: Policy | None = None
) -> None:
    pull_request = PullRequest(
        url="http://peer.example/cities", name="cities", policy=policy, pull_options=pull_options
    )
    asyncio.run(node.taking.take(peer, pull_request))


def follow(home: HomeFolder, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int]]:
    """Pull the follower, and give all of its rows."""
    assert run(home, capsys, "pull", "copy")[0] == 0
    lines = run(home, capsys, "tail", "copy", "-n", "100", "-o", "ndjson")[1].splitlines()
    return [(row["city"], row["people"]) for row in map(json.loads, lines)]


def reject(home: HomeFolder, capsys: pytest.CaptureFixture[str], code: int, stated: str) -> None:
    """Pull the follower in vain, twice, and see that nothing of the home has changed."""
    before = list_kept(home.path)
    for _ in range(2):
        found, _, reported = run(home, capsys, "pull", "copy")
        assert (found, stated in reported) == (code, True), reported
    assert list_kept(home.path) == before


def run(home: HomeFolder, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["--home", str(home.path), *words])
    reported = capsys.readouterr()
    return code, reported.out, reported.err


@pytest.fixture
def begun(
    home: HomeFolder, node: Node, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> PeerChain:
    """Have a follower that has taken what the first slice of a signed copy holds; give the whole of that."""
    take(node, OfferingPeer(chain.up_to(2)))
    begin(home, tmp_path, capsys)
    return chain


def begin(home: HomeFolder, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "copy.yaml").write_text(FOLLOWER)
    assert run(home, capsys, "add", str(folder / "copy.yaml"))[0] == 0
    assert follow(home, capsys) == [*CITIES]


def test_copy_that_is_frozen_is_followed_no_further_until_its_owner_has_settled(
    home: HomeFolder, node: Node, begun: PeerChain, capsys: pytest.CaptureFixture[str]
) -> None:
    fork = begun.up_to(2).add_rows([("Atlantis", 1)])
    proof = prove_equivocation(EquivocationKind.HEADS, begun.signed_head(), fork.signed_head())
    with pytest.raises(ProposalRejectedError):
        take(node, OfferingPeer(begun, disputes=(proof.raw,)))
    reject(home, capsys, 4, "frozen")
    kept = begun.blocks[proof.position].hash
    settlement = sign_settlement(DATASET_KEY, proof, keeps=kept, reason="a lost disk", time=NOW)
    take(node, OfferingPeer(begun, disputes=(proof.raw, settlement)))
    assert follow(home, capsys) == [*CITIES, *MORE_CITIES]
    assert follow(home, capsys) == [*CITIES, *MORE_CITIES]


@pytest.mark.parametrize("subset", [Subset.METADATA_ONLY, Subset.ROWS_LATER])
def test_rows_that_are_not_here_yet_are_waited_for(
    home: HomeFolder, node: Node, begun: PeerChain, subset: Subset, capsys: pytest.CaptureFixture[str]
) -> None:
    take(node, OfferingPeer(begun), AcceptOptions(published=True, force=False, subset=subset))
    reject(home, capsys, 3, "'cities' lacks 1 file in this node; 'odf-node pull cities' brings")
    take(node, OfferingPeer(begun))
    assert follow(home, capsys) == [*CITIES, *MORE_CITIES]
    assert follow(home, capsys) == [*CITIES, *MORE_CITIES]


def test_another_history_is_not_followed_where_the_first_one_was_read(
    home: HomeFolder, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "peer").mkdir()
    chain = unsigned(root_chain(tmp_path / "peer"))
    other = unsigned(chain.up_to(1).add_rows(MORE_CITIES).add_rows(CITIES).add_rows(MORE_CITIES))
    take(node, OfferingPeer(chain.up_to(2), has_signatures=False), policy=Policy.UNSIGNED)
    begin(home, tmp_path, capsys)
    by_force = AcceptOptions(published=True, force=True)
    take(node, OfferingPeer(other, has_signatures=False), by_force, Policy.UNSIGNED)
    reject(home, capsys, 4, "history-stays")
    take(node, OfferingPeer(chain, has_signatures=False), by_force, Policy.UNSIGNED)
    assert follow(home, capsys) == [*CITIES, *MORE_CITIES]


def unsigned(chain: PeerChain) -> PeerChain:
    return chain.copy(signatures=[None] * len(chain.blocks))
