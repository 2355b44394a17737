"""Large slices are checked while others arrive; what follows from that is what would have followed without."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from odf_engines.errors import SandboxUnavailableError
from odf_node.acceptance import row_checks
from odf_node.acceptance.offers import AcceptanceReport, AcceptOptions, Subset
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange import fetching
from odf_node.exchange.taking import PullRequest
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import UnavailableError
from odf_protocol.events import DataField, DataTypeInt64, DataTypeOption, SetDataSchema
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.timestamp import Timestamp
from support.offering_peer import OfferingPeer
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, slice_table
from support.own_children import find_children
from support.slice_reader import FrozenReader, OwnReader

FIRST_SLICE, SECOND_SLICE = 2, 3
WAIT_S = 120.0  # guess: a machine that is slow and busy


@pytest.fixture(autouse=True)
def every_slice_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LARGE_BYTES", 1)


@pytest.fixture
def readers_of_the_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_checks, "SliceProcess", OwnReader)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> dict[int, Event]:
    """Set when the rows of a block were looked at, by number."""
    events = {FIRST_SLICE: Event(), SECOND_SLICE: Event()}
    check = SliceProcess.check

    def note(self: SliceProcess, path: Path, block: Block, view: DatasetView) -> None:
        try:
            check(self, path, block, view)
        finally:
            events[block.sequence_number].set()

    monkeypatch.setattr(SliceProcess, "check", note)
    return events


class LateFirstSlice(OfferingPeer):
    """Sends the newest object first, and the next one when the rows of that one have been looked at."""

    looked_at: Event

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        last, *others = reversed(wanted)
        await super().fetch_objects([last], objects, on_bytes)
        assert await asyncio.to_thread(self.looked_at.wait, WAIT_S)
        await super().fetch_objects(others, objects, on_bytes)


def pull(node: Node, peer: OfferingPeer, **options: Any) -> AcceptanceReport:
    return asyncio.run(
        node.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities", **options))
    )  # fmt: skip


@pytest.mark.usefixtures("readers_of_the_pull")
def test_slice_is_checked_while_another_is_still_on_its_way(
    node: Node, chain: PeerChain, checked: dict[int, Event]
) -> None:
    peer = LateFirstSlice(chain)
    peer.looked_at = checked[SECOND_SLICE]

    assert pull(node, peer).new_rows == len(chain.files) * 3


@pytest.mark.usefixtures("readers_of_the_pull")
def test_first_wrong_block_is_named_although_a_later_one_was_found_wrong_before(
    node: Node, judge: Judge, chain: PeerChain, checked: dict[int, Event]
) -> None:
    lying = chain.copy()
    for number in (FIRST_SLICE, SECOND_SLICE):
        at, first = Timestamp(NOON.seconds + number), (number - FIRST_SLICE) * 3
        rows = [("Atlantis", number)] * 3
        lying = lying.replacing_slice(number, slice_table(rows, first_offset=first, at=at, op=[0, 9, 0]))
    peer = LateFirstSlice(lying)
    peer.looked_at = checked[SECOND_SLICE]
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError, match="ROWS-4") as caught:
        pull(node, peer)

    assert caught.value.sequence_number == FIRST_SLICE
    assert judge.snapshot() == before
    assert not list(node.objects.iter_hashes())


def test_slices_are_judged_by_the_schema_in_force_at_their_block(node: Node, chain: PeerChain) -> None:
    grown = replace(
        CITY_SCHEMA, fields=(*CITY_SCHEMA.fields, DataField(name="area", type=DataTypeOption(inner=DataTypeInt64())))
    )
    chain = chain.copy().add(SetDataSchema(schema=grown))
    at = Timestamp(NOON.seconds + len(chain.blocks))
    table = slice_table([("Bern", 1)], first_offset=chain.next_offset(), at=at)
    chain.add_slice(parquet_bytes(table.append_column("area", pa.array([52], pa.int64()))), rows=1)

    assert pull(node, OfferingPeer(chain)).new_rows == 7


def test_pull_that_breaks_ends_its_readers_in_the_middle_of_a_slice(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_checks, "SliceProcess", FrozenReader)

    class BreakingPeer(OfferingPeer):
        async def fetch_objects(
            self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
        ) -> None:
            await super().fetch_objects(wanted, objects, on_bytes)
            raise UnavailableError("the line is cut")

    before = find_children("odf_engines.reading")
    with pytest.raises(UnavailableError, match="the line is cut"):
        pull(node, BreakingPeer(chain))
    assert find_children("odf_engines.reading") <= before


class BlockByBlock(OfferingPeer):
    """Sends the block behind the first slice when a reader runs beside those that ran before."""

    before: set[str]

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        async for block in super().iter_blocks(after=after, upto=upto):
            if self.chain.blocks[SECOND_SLICE].raw == block.raw:
                await asyncio.to_thread(self._wait_for_reader)
            yield block

    def _wait_for_reader(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while not find_children("odf_engines.reading") - self.before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def every_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "BATCH_BLOCKS", 1)


@pytest.mark.usefixtures("readers_of_the_pull", "every_block_alone")
@pytest.mark.parametrize("honest", [True, False])
def test_reader_is_up_while_blocks_still_arrive_and_ends_with_the_pull(
    node: Node, chain: PeerChain, honest: bool
) -> None:
    before = find_children("odf_engines.reading")
    if not honest:
        chain.signatures[SECOND_SLICE] = bytes(64)
    peer = BlockByBlock(chain)
    peer.before = before

    with nullcontext() if honest else pytest.raises(ProposalRejectedError):
        pull(node, peer)

    assert find_children("odf_engines.reading") <= before


@pytest.mark.usefixtures("every_block_alone")
def test_no_reader_is_started_where_rows_are_read_later(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SliceProcess, "start", lambda _reader: pytest.fail("a reader was started"))
    pull(node, OfferingPeer(chain), pull_options=AcceptOptions(published=True, force=False, subset=Subset.ROWS_LATER))


@pytest.mark.usefixtures("every_block_alone")
def test_false_chain_is_rejected_also_where_no_sandbox_can_be_made(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoReader(OwnReader):
        def start(self) -> None:
            raise SandboxUnavailableError("not allowed here")

    monkeypatch.setattr(row_checks, "SliceProcess", NoReader)
    with pytest.raises(SandboxUnavailableError):
        pull(node, OfferingPeer(chain))
    chain.signatures[SECOND_SLICE] = bytes(64)
    with pytest.raises(ProposalRejectedError):
        pull(node, OfferingPeer(chain))
