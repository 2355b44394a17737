"""The rule of rows that are taken back, asked about the chains of this node and those that are to become its own.

Source: clauses ROWS-12 to ROWS-14 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.datasets.chains import load_view
from odf_node.errors import UnsoundResultError
from odf_node.ports.objects import StoredObjects
from odf_node.ports.rows import RowsCache
from odf_node.readable_inputs import find_input
from odf_node.records.access import READS_EVERYTHING, ReadGrants
from odf_node.rows.chain_slices import ChainSlice, Excuse, describe_unsound
from odf_node.rows.changelog_check import ChangelogCheck
from odf_node.rows.slice_process import RowReader, SliceProcess, reader_of_own_files
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddData,
    DataSlice,
    ExecuteTransform,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odf_protocol.transform_plan import input_ids

if TYPE_CHECKING:
    from odf_node.rows.chain_slices import UnsoundBlock

TAKING: Final = (1, 2)
"""Operations that take a row back. Source: ODF OperationType, retract and correct-from."""


@dataclass(frozen=True, slots=True)
class Changelogs:
    """Asks about the rows of chains; ``objects`` has the files of blocks that are held here.

    ``reads``: what of this node whoever offers a chain may know; an input hidden from them is no excuse (EX-83).
    """

    store: MetadataStore
    objects: StoredObjects
    cache: RowsCache
    reads: ReadGrants = READS_EVERYTHING

    def find_unsound(
        self, view: DatasetView, *, first: int, new: Sequence[ChainSlice], reader: RowReader
    ) -> "list[UnsoundBlock] | None":
        """Find the blocks that take back what is not there, up to the first one for which there is no excuse.

        Args:
            view: What is in force after the new blocks.
            first: Number of the first new block.
            new: Their slices, whose rows were checked.
            reader: Reads slices.

        Returns:
            None where nobody can say: files of blocks before are not here.

        Raises:
            RejectedError, MalformedError, UnsupportedError: A slice costs too much to read.
        """
        if view.schema is None or not any(each.taken is None or each.taken for each in new):
            return []
        earlier = self.list_slices(view.dataset_id, before=first)
        if earlier is None:
            return None
        check = self._check_of(view, reader)
        unsound = check.find_unsound(earlier, new)
        if not unsound or unsound[-1].is_excused or not self._has_unsound_input(view):
            return unsound
        excuse = Excuse.ALL
        return check.find_unsound(earlier, [replace(each, excuse=excuse) for each in new])

    def _check_of(self, view: DatasetView, reader: RowReader) -> ChangelogCheck:
        assert view.schema is not None
        known = view.vocabulary
        of_change = (known.offset, known.op, known.system_time)
        columns = tuple(each.name for each in view.schema.fields if each.name not in of_change)
        return ChangelogCheck(reader, self.cache, known, columns)

    def _has_unsound_input(self, view: DatasetView) -> bool:
        """Say whether a dataset is derived from one that takes back what is not there, which it may hand on."""
        with SliceProcess() as reader:
            for dataset_id in () if view.transform is None else input_ids(view.transform):
                record = find_input(self.store, dataset_id, self.reads)
                slices = (
                    None if record is None else self.list_slices(dataset_id, before=record.head.sequence_number + 1)
                )
                if slices and self._check_of(load_view(self.store, dataset_id), reader).find_unsound([], slices):
                    return True
        return False

    def require_sound(self, view: DatasetView, new_data: DataSlice, path: Path, *, taken: int | None = None) -> str:
        """Stop this node from writing what takes back a row that is not there (ROWS-14).

        Args:
            view: What is in force before the block.
            new_data: The slice that the block is to add, with a data schema in force.
            path: Has it.
            taken: How many of its rows take another one back; None: nobody counted.

        Returns:
            What is weak about it in words, where there is an excuse; empty otherwise.

        Raises:
            UnsoundResultError: It does, and there is no excuse.
        """
        if taken == 0:
            return ""
        new = ChainSlice(
            sequence_number=view.sequence_number + 1,
            object_hash=new_data.physical_hash,
            path=path,
            rows=new_data.offset_interval.row_count,
            first_offset=new_data.offset_interval.start,
            taken=taken,
        )
        with reader_of_own_files() as reader:
            unsound = self.find_unsound(view, first=view.sequence_number + 1, new=[new], reader=reader)
        if not unsound:
            return ""
        if unsound[-1].is_excused:
            return describe_unsound(unsound)
        record = self.store.find_dataset(view.dataset_id)
        name = str(view.dataset_id) if record is None else record.name
        raise UnsoundResultError(name, unsound[-1].explain(), _describe_fix(view, name))

    def list_slices(self, dataset_id: DatasetId, *, before: int) -> list[ChainSlice] | None:
        """List the slices that blocks before a number add; None where a file is not here."""
        if not before or self.store.find_dataset(dataset_id) is None:
            return []
        found = []
        for stored in self.store.iter_blocks_with_rows(dataset_id):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            if block.sequence_number >= before:
                break
            data = data_of(block)
            if not self.objects.has(data.physical_hash):
                return None
            found.append(slice_of(block, self.objects.get_path(data.physical_hash)))
        return found


def excuse_of(view: DatasetView) -> Excuse:
    """Say what a root may take back that is not there, by the sources in force in it (ROWS-13)."""
    merges = [each.merge for each in (view.polling_source, *view.push_sources.values()) if each is not None]
    if any(isinstance(each, MergeStrategyChangelogStream) for each in merges):
        return Excuse.ALL
    if any(isinstance(each, MergeStrategySnapshot | MergeStrategyUpsertStream) for each in merges):
        return Excuse.TOO_OFTEN
    return Excuse.NONE


def _describe_fix(view: DatasetView, name: str) -> str:
    check = f"'odf-node verify --all {name}' says whether what it has is right"
    if view.transform is None:
        return f"this is a fault of odf-node, please report it; {check}"
    return (
        "a query that gives operations itself has to give, for each row that it takes back, the row that it gave "
        f"(leave its column '{view.vocabulary.op}' out, or give all columns of the input); any other is computed "
        f"wrongly, please report it: {check}, and a dataset made anew of the same query is computed from the beginning"
    )


def data_of(block: Block) -> DataSlice:
    """Return the slice that a block adds."""
    assert isinstance(block.event, AddData | ExecuteTransform)
    assert block.event.new_data is not None
    return block.event.new_data


def slice_of(block: Block, path: Path, view: DatasetView | None = None, *, taken: int | None = None) -> ChainSlice:
    """Describe the slice that a block adds; ``view``: what is in force, for a block of which the rule is asked."""
    data = data_of(block)
    return ChainSlice(
        sequence_number=block.sequence_number,
        object_hash=data.physical_hash,
        path=path,
        rows=data.offset_interval.row_count,
        first_offset=data.offset_interval.start,
        taken=taken,
        excuse=Excuse.NONE if view is None else excuse_of(view),
    )
