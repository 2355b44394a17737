"""Chains of others, checked as they arrive and read again block by block: memory does not grow with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, overload

from odf_node.derive.step_records import check_record
from odf_node.ports.block_stage import BlockStage, ProposedBlock, StagedBlock
from odf_node.records.commits import NewBlock, role_of_traits
from odf_protocol import block_traits as traits
from odf_protocol.block import Block, decode_block
from odf_protocol.chain import ChainState, Strictness
from odf_protocol.chain.rule import Rule
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.dataset_view import DatasetView, ViewFold
from odf_protocol.did import DatasetId
from odf_protocol.errors import CorruptError, RejectedError
from odf_protocol.events import AddData, ExecuteTransform, SetTransform
from odf_protocol.head import Head
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.step_record import StepRecord

_ROLES: Final = tuple(role_of_traits(number) for number in range(2 * traits.LICENSE))
"""By traits."""


@dataclass(frozen=True, slots=True)
class NeededObject:
    """An object that blocks name, with the size that they state."""

    hash: Multihash
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One block of a checked chain, what was in force before it (None: it is the Seed) and what is after it.

    ``record`` is the step record that came along.
    """

    block: Block
    before: DatasetView | None
    after: DatasetView
    record: StepRecord | None


@dataclass(frozen=True, slots=True)
class CheckedChain:
    """Blocks that keep every chain rule, in a stage, and what is in force at their ends.

    ``keys`` says who speaks for the dataset. ``before`` is the view before the first block, None where that is the
    Seed; ``view`` and ``state`` are those after the last one. ``warnings`` are rules that only this implementation
    demands and that a foreign chain may break.
    """

    keys: KeyHistory
    before: DatasetView | None
    stage: BlockStage
    view: DatasetView
    state: ChainState
    warnings: tuple[str, ...]

    @property
    def dataset_id(self) -> DatasetId:
        """Whose chain."""
        return self.keys.dataset_id

    @property
    def first(self) -> Head:
        """The first block."""
        return Head(self._first_number, _hash_of(self.stage.get_staged(0)))

    @property
    def last(self) -> Head:
        """The last block."""
        return Head(self.state.sequence_number, self.state.head)

    @property
    def hashes(self) -> Mapping[int, Multihash]:
        """Hashes of the blocks by number, looked up one by one."""
        return _Hashes(self.stage, self._first_number)

    def iter_steps(self, wanted: int) -> Iterator[ChainStep]:
        """Yield the blocks that have one of the ``wanted`` traits, in order; the others are not decoded."""
        if not self.stage.traits & wanted:
            return
        fold = ViewFold(self.before)
        for staged in self.stage.iter_staged():
            proposed = staged.proposed
            if not staged.traits & wanted:
                fold.take(proposed.raw, staged.traits)
                continue
            block, before, record = decode_block(proposed.raw, expected_hash=_hash_of(staged)), fold.view, None
            if proposed.step_record is not None:
                record = check_record(proposed.step_record, block, self.keys, before)
            fold.take_block(block)
            after = fold.view
            assert after is not None
            yield ChainStep(block, before, after, record)

    def iter_blocks(self, wanted: int) -> Iterator[Block]:
        """Yield the blocks that have one of the ``wanted`` traits, in order."""
        for staged in self.stage.iter_with(wanted):
            yield decode_block(staged.proposed.raw, expected_hash=_hash_of(staged))

    def new_blocks(self, *, after: int | None = None) -> Sequence[NewBlock]:
        """Give the blocks as a commit takes them: all, or those above number ``after``; read when they are used."""
        skipped = 0 if after is None else max(after + 1 - self._first_number, 0)
        return _NewBlocks(self.stage, self._first_number, skipped)

    def needed_objects(self) -> list[NeededObject]:
        """List slices and checkpoints of the blocks, oldest first, each once."""
        needed: dict[Multihash, NeededObject] = {}
        for block in self.iter_blocks(traits.ROWS | traits.CHECKPOINT):
            assert isinstance(block.event, AddData | ExecuteTransform)
            for part in (block.event.new_data, block.event.new_checkpoint):
                if part is not None:
                    needed.setdefault(part.physical_hash, NeededObject(part.physical_hash, part.size))
        return list(needed.values())

    def list_engines(self) -> list[str]:
        """List the engines that the steps ran in, and the one that is in force at the end, each once."""
        names: dict[str, None] = {}
        declared = None if self.before is None else self.before.transform
        for staged in self.stage.iter_with(traits.STEP | traits.DEFINITION):
            if staged.traits & traits.STEP and declared is not None:
                names[declared.transform.engine] = None
            elif staged.traits & traits.DEFINITION:
                event = decode_block(staged.proposed.raw, expected_hash=None).event
                declared = event if isinstance(event, SetTransform) else declared
        if self.view.transform is not None:
            names[self.view.transform.transform.engine] = None
        return list(names)

    def count_rows(self) -> int:
        """Count the rows that the blocks add."""
        rows = 0
        for block in self.iter_blocks(traits.ROWS):
            assert isinstance(block.event, AddData | ExecuteTransform)
            assert block.event.new_data is not None
            rows += block.event.new_data.offset_interval.row_count
        return rows

    def count(self, wanted: int) -> int:
        """Count the blocks that have one of the ``wanted`` traits."""
        return sum(1 for _ in self.stage.iter_with(wanted))

    @property
    def _first_number(self) -> int:
        return 0 if self.before is None else self.before.sequence_number + 1


class ChainCheck:
    """Checks blocks that follow ``state``, batch by batch: decoding, link, every rule, signatures.

    What holds is put into the stage. After the first error the check is over.
    """

    def __init__(
        self,
        stage: BlockStage,
        *,
        keys: KeyHistory,
        state: ChainState | None,
        before: DatasetView | None,
        signed: bool,
        further: Sequence[Rule] = (),
    ) -> None:
        """Begin.

        Args:
            stage: Where the blocks go; empty.
            keys: Who speaks for the dataset; each signature is judged by the key of its block (KEY-5).
            state: After the block before the first one; None: they start with the Seed.
            before: What is in force after that block.
            signed: Every block has to be signed.
            further: Rules that this node alone has.
        """
        self._stage = stage
        self._keys = keys
        self._before = before
        self._signed = signed
        self._number = 0 if state is None else state.sequence_number + 1
        self._verifier = ChainVerifier(state, strictness=Strictness.FOREIGN, further=further)
        self._fold = ViewFold(before)
        self.has_rows = False
        """Whether some block so far has data."""

    def take(self, item: ProposedBlock) -> None:
        """Check the next block.

        Raises:
            MalformedError, UnsupportedError: Bytes that are no block of a known version.
            RejectedError: A rule is broken or a signature is missing or wrong.
        """
        found = self._verifier.take(item.raw)
        block_hash = Multihash(SHA3_256, found.digest)
        self._keys.require_kept(self._number, block_hash)
        if item.signature is not None:
            # Also where no head is signed: what is kept and passed on with a block must be true.
            self._keys.require_block(item.signature, self._number, block_hash)
        elif self._signed:
            number = self._number
            raise RejectedError("SIG-1 block-is-signed", sequence_number=number, expected="a signature", found="none")
        if item.step_record is not None:
            check_record(item.step_record, found.block, self._keys, self._fold.view)
        self._fold.take_block(found.block)
        self._stage.append(StagedBlock(item, found.digest, found.traits))
        self.has_rows |= bool(found.traits & traits.ROWS)
        self._number += 1

    def finish(self) -> CheckedChain:
        """Give the chain; there was at least one block."""
        state, view = self._verifier.state, self._fold.view
        assert state is not None
        assert view is not None
        warnings = [str(warning) for warning in self._verifier.warnings]
        if self._verifier.warning_count > len(warnings):
            warnings.append(f"and {self._verifier.warning_count - len(warnings):,} more warnings")
        return CheckedChain(self._keys, self._before, self._stage, view, state, tuple(warnings))


def stage_unchecked(stage: BlockStage, blocks: Iterable[ProposedBlock]) -> None:
    """Keep blocks that nobody will accept: they belong to the evidence of a rejection."""
    for block in blocks:
        stage.append(StagedBlock(block, Multihash.of_sha3_256(block.raw).digest, 0))


class _Hashes(Mapping[int, Multihash]):
    def __init__(self, stage: BlockStage, first: int) -> None:
        self._stage = stage
        self._first = first

    def __getitem__(self, number: int) -> Multihash:
        position = number - self._first
        if not 0 <= position < len(self._stage):
            raise KeyError(number)
        return _hash_of(self._stage.get_staged(position))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._first, self._first + len(self._stage)))

    def __len__(self) -> int:
        return len(self._stage)


class _NewBlocks(Sequence[NewBlock]):
    def __init__(self, stage: BlockStage, first: int, skipped: int) -> None:
        self._stage = stage
        self._first = first
        self._skipped = skipped

    def __len__(self) -> int:
        return len(self._stage) - self._skipped

    def __iter__(self) -> Iterator[NewBlock]:
        for position, staged in enumerate(self._stage.iter_staged(self._skipped), start=self._skipped):
            yield _new_block(staged, self._first + position)

    @overload
    def __getitem__(self, place: int) -> NewBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[NewBlock]: ...
    def __getitem__(self, place: int | slice) -> NewBlock | Sequence[NewBlock]:
        if isinstance(place, slice):
            return [self[number] for number in range(len(self))[place]]
        position = self._skipped + range(len(self))[place]
        return _new_block(self._stage.get_staged(position), self._first + position)


def _new_block(staged: StagedBlock, number: int) -> NewBlock:
    proposed = staged.proposed
    found = Multihash.of_sha3_256(proposed.raw)
    if found.digest != staged.digest:
        raise CorruptError(f"block {number} is not what was checked: the disk or the memory of this machine is damaged")
    return NewBlock(proposed.raw, found, number, proposed.signature, proposed.step_record, role=_ROLES[staged.traits])


def _hash_of(staged: StagedBlock) -> Multihash:
    return Multihash(SHA3_256, staged.digest)
