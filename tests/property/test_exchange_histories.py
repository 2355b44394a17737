"""Random exchanges between nodes: over lines that break, with a publisher that may tell two stories."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import FrozenDatasetError, ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.peer_errors import PeerUnavailableError, PushRejectedError
from odf_node.ports.progress import Silence
from odf_node.store import MetadataStore
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from support.bad_lines import bad_line
from support.exchange_nodes import TestNode
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain

READERS = st.integers(0, 1)
CITIES = st.lists(st.tuples(st.text("abc", min_size=1, max_size=4), st.integers(0, 9)), min_size=1, max_size=3)


class ExchangeHistories(RuleBasedStateMachine):
    """A publisher with two copies of its home, of which one may be given another continuation, and two readers."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        first = root_chain(self._folder, slices=1)
        self._stories = [first]
        self._publishers = [self._keep("publisher0", first)]
        self._readers = [Node(HomeFolder(self._folder / f"reader{n}"), FixedClock(NOW)) for n in range(2)]
        self._accepted: list[list[Multihash]] = [[], []]
        self._refused = [0, 0]

    def teardown(self) -> None:
        for reader in self._readers:
            for record in reader.store.list_datasets():
                assert reader.verifier.verify(record, replay=False, on_progress=Silence().on_progress).is_valid
            reader.close()
        for publisher in self._publishers:
            publisher.store.close()
        shutil.rmtree(self._folder)

    @rule(cities=CITIES, reported=st.integers(0, 1))
    def publish_rows(self, cities: list[tuple[str, int]], reported: int) -> None:
        self._extend(reported, lambda chain: chain.add_rows(cities))

    @rule(text=st.text("xyz", max_size=3), reported=st.integers(0, 1))
    def publish_words(self, text: str, reported: int) -> None:
        self._extend(reported, lambda chain: chain.add(SetInfo(description=text)))

    @precondition(lambda self: len(self._stories) == 1)
    @rule(cities=CITIES)
    def tell_another_story(self, cities: list[tuple[str, int]]) -> None:
        """The same key signs another block for a number that it has signed already."""
        chain = self._stories[0]
        other = chain.up_to(chain.head.sequence_number - 1)
        other.add_rows([*cities, ("only here", len(chain.blocks))])
        self._stories.append(other)
        self._publishers.append(self._keep("publisher1", other))

    @rule(reader=READERS, reported=st.integers(0, 1), cut=st.none() | st.integers(0, 2_000))
    def pull_from_the_publisher(self, reader: int, reported: int, cut: int | None) -> None:
        served = self._publishers[min(reported, len(self._publishers) - 1)]
        self._pull(reader, served, cut)

    @rule(reader=READERS, cut=st.none() | st.integers(0, 2_000))
    def pull_from_the_other_reader(self, reader: int, cut: int | None) -> None:
        other = self._readers[1 - reader]
        if other.store.list_datasets():
            self._pull(reader, TestNode.create(other.home.folder.path), cut)

    @invariant()
    def what_was_accepted_stays(self) -> None:
        for n, reader in enumerate(self._readers):
            held = [
                block.hash for record in reader.store.list_datasets() for block in reader.store.iter_blocks(record.id)
            ]
            assert held[: len(self._accepted[n])] == self._accepted[n]
            self._accepted[n] = held

    @invariant()
    def what_is_held_is_one_story_that_the_publisher_reported(self) -> None:
        reported = [[block.hash for block in story.blocks] for story in self._stories]
        for held in self._accepted:
            assert any(story[: len(held)] == held for story in reported)

    @invariant()
    def every_object_is_whole(self) -> None:
        for reader in self._readers:
            for name in reader.objects.iter_hashes():
                assert Multihash.of_sha3_256(reader.objects.get_path(name).read_bytes()) == name
            assert reader.store.list_expected_objects() <= set(reader.objects.iter_hashes())

    @invariant()
    def nothing_is_rejected_while_one_story_is_reported(self) -> None:
        if len(self._stories) == 1:
            assert self._refused == [0, 0]

    def _extend(self, reported: int, add: Callable[[PeerChain], object]) -> None:
        reported = min(reported, len(self._stories) - 1)
        add(self._stories[reported])
        PublisherHome(Judge.create(self._folder / f"publisher{reported}")).keep(self._stories[reported])

    def _keep(self, name: str, chain: PeerChain) -> TestNode:
        PublisherHome(Judge.create(self._folder / name)).keep(chain)
        return TestNode.create(self._folder / name)

    def _pull(self, reader: int, served: TestNode, cut: int | None) -> None:
        before = list(self._accepted[reader])
        node = self._readers[reader]
        theirs = [
            block.hash for record in served.store.list_datasets() for block in served.store.iter_blocks(record.id)
        ]

        async def pull() -> None:
            async with served.serving() as address:
                if cut is None:
                    await take(node, address)
                    return
                async with bad_line(address, lambda: cut) as (_line, url):
                    with suppress(PeerUnavailableError):
                        await take(node, url)

        try:
            asyncio.run(pull())
        except ProposalRejectedError:
            self._refused[reader] += 1
            # Whoever is rejected told something else than was accepted, and is not believed.
            assert theirs[: len(before)] != before[: len(theirs)]
            return
        except (FrozenDatasetError, PushRejectedError):
            # Who knows of both stories follows neither, and serves neither (EQUIV-9, EQUIV-10).
            assert len(self._publishers) > 1
            assert hashes_of(node.store) == before
            return
        held = hashes_of(node.store)
        assert held in (before, theirs)
        if cut is None:
            assert held == max(before, theirs, key=len)


def hashes_of(store: MetadataStore) -> list[Multihash]:
    """Return the hashes of all blocks that are held; here they are of one dataset."""
    return [block.hash for record in store.list_datasets() for block in store.iter_blocks(record.id)]


async def take(node: Node, url: str) -> None:
    async with await node.outgoing.open_peer(f"{url}/cities") as peer:
        await node.taking.take(peer, PullRequest(url=f"{url}/cities", name="cities"))


ExchangeHistories.TestCase.settings = settings(max_examples=settings().max_examples // 5, stateful_step_count=15)
TestExchangeHistories = ExchangeHistories.TestCase
