"""What a pull from another node, a push to one, or the next run of a derivative would do; nothing is kept.

What another node says is read as far as its blocks: their number, and what they say of rows and files. None of it is
checked, as it is not taken: the deed checks it.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from odf_node.datasets.chains import iter_decoded, load_view
from odf_node.derive.holding import find_holds
from odf_node.derive.steps import StepBuilder
from odf_node.exchange.fetching import close_source
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import name_in_url
from odf_node.home import Home
from odf_node.ports.peer_client import PeerDataset, PeerHead
from odf_node.records.datasets import DatasetRecord
from odf_protocol.accept_policies import PolicySet
from odf_protocol.block import Block, decode_block
from odf_protocol.did import DatasetId
from odf_protocol.errors import NotFoundError, UnavailableError
from odf_protocol.events import AddData, ExecuteTransform, Seed, SetTransform
from odf_protocol.head import Head
from odf_protocol.policy import AcceptRule, Policy

__all__ = ["Forecasting", "PullForecast", "PushForecast", "StepForecast"]


@dataclass(slots=True)
class Growth:
    """What blocks say that they bring."""

    blocks: int = 0
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    steps: int = 0

    def take(self, block: Block) -> None:
        """Count a block."""
        self.blocks += 1
        if isinstance(block.event, AddData | ExecuteTransform):
            self.steps += isinstance(block.event, ExecuteTransform)
            if block.event.new_data is not None:
                self.rows += block.event.new_data.offset_interval.row_count
            for each in (block.event.new_data, block.event.new_checkpoint):
                if each is not None:
                    self.files += 1
                    self.size_bytes += each.size


@dataclass(frozen=True, slots=True)
class PullForecast:
    """What a pull from another node would bring.

    Attributes:
        name: What the dataset would be called, or is called, here.
        url: Where it is.
        record: The copy here; None where it would be new.
        growth: What is new there.
        rule: That would decide on it, None where nothing is new.
        is_fork: What is there does not go on from what is here.
        lacking: Inputs of its steps that are not here, by what its query calls them.
    """

    name: str
    url: str
    record: DatasetRecord | None
    growth: Growth = field(default_factory=Growth)
    rule: AcceptRule | None = None
    is_fork: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def reexecutes(self) -> bool:
        """Whether its steps would be re-executed here before they are accepted (ACCEPT-1)."""
        return self.growth.steps > 0 and self.rule is not None and self.rule.policy in {None, Policy.REEXECUTE}


@dataclass(frozen=True, slots=True)
class PushForecast:
    """What a push would send: ``known`` is what the other side has, None where the dataset would be new to it."""

    url: str
    known: Head | None
    growth: Growth
    is_fork: bool = False


@dataclass(frozen=True, slots=True)
class StepForecast:
    """What the next run of a derivative of this node would read."""

    record: DatasetRecord
    inputs: int
    new_blocks: int

    @property
    def is_up_to_date(self) -> bool:
        """Whether there is nothing to run."""
        return not self.new_blocks


@dataclass(frozen=True, slots=True)
class Forecasting:
    """The use case behind ``--dry-run`` of ``pull`` and ``push``."""

    home: Home
    policies: PolicySet
    open_peer: Callable[[str], Awaitable[PeerDataset]]

    async def of_pull(self, target: PullTarget, *, local_name: str | None, policy: Policy | None) -> PullForecast:
        """Ask where a dataset is pulled from what is new; addresses are asked as a pull would ask them.

        Raises:
            UnavailableError, NotFoundError, MalformedError: As a pull.
        """
        assert target.url is not None
        *others, last = (target.url, *target.others)
        for url in others:
            try:
                return await self._ask(url, target, local_name, policy)
            except (UnavailableError, NotFoundError):
                continue
        return await self._ask(last, target, local_name, policy)

    async def _ask(self, url: str, target: PullTarget, local_name: str | None, policy: Policy | None) -> PullForecast:
        async with await self.open_peer(url) as peer:
            proposed = await peer.get_head()
            record = target.record
            if record is None:
                record = await self._find_held(peer, proposed)
            name = local_name or (record.name if record else target.name) or name_in_url(url)
            if record is not None and self.home.store.find_block(record.id, proposed.head.hash) is not None:
                return PullForecast(name, url, record)
            if record is not None and proposed.head.sequence_number <= record.head.sequence_number:
                return PullForecast(name, url, record, is_fork=True)
            growth, dataset_id = Growth(), None if record is None else record.id
            transform = load_view(self.home.store, record.id).transform if record is not None else None
            expected = record.head.hash if record is not None else None
            blocks = peer.iter_blocks(after=record.head if record else None, upto=proposed.head)
            try:
                async for packed in blocks:
                    block = decode_block(packed.raw, expected_hash=None)
                    if not growth.blocks and block.prev_block_hash != expected:
                        return PullForecast(name, url, record, is_fork=True)
                    growth.take(block)
                    if isinstance(block.event, Seed):
                        dataset_id = block.event.dataset_id
                    elif isinstance(block.event, SetTransform):
                        transform = block.event
            finally:
                await close_source(blocks)
        rule = AcceptRule.of(policy)
        if policy is None and dataset_id is not None:
            rule = self.policies.find_rule(name, dataset_id, url)
        return PullForecast(name, url, record, growth, rule, lacking=self._find_lacking(transform))

    async def _find_held(self, peer: PeerDataset, proposed: PeerHead) -> DatasetRecord | None:
        """Find the copy held here; plain servers and folders say in the Seed alone which dataset they have."""
        if proposed.dataset_id is not None:
            return self.home.store.find_dataset(proposed.dataset_id)
        blocks = peer.iter_blocks(after=None, upto=proposed.head)
        try:
            packed = await anext(blocks, None)
        finally:
            await close_source(blocks)
        event = None if packed is None else decode_block(packed.raw, expected_hash=None).event
        return self.home.store.find_dataset(event.dataset_id) if isinstance(event, Seed) else None

    def _find_lacking(self, transform: SetTransform | None) -> tuple[str, ...]:
        if transform is None:
            return ()
        return tuple(
            item.alias or item.dataset_ref
            for item in transform.inputs
            if self.home.store.find_dataset(DatasetId.parse(item.dataset_ref)) is None
        )

    def of_step(self, record: DatasetRecord) -> StepForecast:
        """Say what the next run of an own derivative would read.

        Raises:
            UsageError, DatasetNotFoundError: It declares no query, or an input is not here.
        """
        builder = StepBuilder(self.home.store, self.home.objects, find_holds(self.home, record))
        planned = builder.plan_next(load_view(self.home.store, record.id), None)
        gained = [item for item in planned if not item.is_empty]
        return StepForecast(record, len(gained), sum(1 for item in gained if item.recorded.new_block_hash is not None))

    async def of_push(self, record: DatasetRecord, url: str) -> PushForecast:
        """Ask what the other side has, and count what it lacks.

        Raises:
            PeerUnavailableError, PeerForbidsError: It does not say.
        """
        known: Head | None = None
        try:
            async with await self.open_peer(url) as peer:
                known = (await peer.get_head()).head
        except NotFoundError:
            pass  # the dataset is new to it
        growth = Growth()
        if known is not None and self.home.store.find_block(record.id, known.hash) is None:
            return PushForecast(url, known, growth, is_fork=True)
        for block in iter_decoded(self.home.store, record.id, after=-1 if known is None else known.sequence_number):
            growth.take(block)
        return PushForecast(url, known, growth)
