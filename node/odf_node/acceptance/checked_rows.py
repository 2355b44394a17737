"""Rows of a checked chain: each slice against its block, and what blocks take back against what was given before.

Source: clauses ROWS-1 to ROWS-14 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from odf_node.acceptance.checked_chain import CheckedChain
from odf_node.datasets.changelogs import Changelogs, slice_of
from odf_node.ports.progress import Count, OnProgress
from odf_node.rows.chain_slices import describe_unsound
from odf_node.rows.slice_process import RowReader, SliceProcess
from odf_protocol import block_traits as traits
from odf_protocol.errors import RejectedError
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_node.rows.chain_slices import ChainSlice


@dataclass(frozen=True, slots=True)
class RowsChecked:
    """How many rows were checked, and what they take back that is not there (ROWS-12).

    ``notes`` say what of that is taken all the same, or could not be looked at (ROWS-13). ``unsound`` is what rejects
    the blocks: after steps were run again, where they are, as a difference that is found so says more.
    """

    rows: int
    notes: tuple[str, ...] = ()
    unsound: RejectedError | None = None

    def require_sound(self) -> None:
        """Reject blocks that take back what is not there."""
        if self.unsound is not None:
            raise self.unsound


def check_rows(
    chain: CheckedChain,
    paths: Mapping[Multihash, Path],
    on_progress: OnProgress,
    *,
    chosen: Container[int] | None = None,
    reader: RowReader | None = None,
    whole: Count | None = None,
    changelogs: Changelogs | None = None,
) -> RowsChecked:
    """Check every row of every slice against its block, and that nothing is taken back that was not given.

    Args:
        chain: The blocks.
        paths: Has each slice that is read, whole.
        on_progress: Hears after each slice how many rows are done.
        chosen: Numbers of the blocks whose slices are read; None: all.
        reader: Reads them and stays open; None: one that is started here.
        whole: How many rows were read before these, and of how many; None: these are all.
        changelogs: Knows the blocks before; None: what rows take back is not looked at, nor where some are left out.

    Raises:
        RejectedError, MalformedError, UnsupportedError: ROWS-1 to ROWS-6.
    """
    count, whole = 0, whole or _rows_of(chain)
    asked: AbstractContextManager[RowReader] = SliceProcess() if reader is None else nullcontext(reader)
    checked: list[ChainSlice] = []
    with asked as process:
        for step in chain.iter_steps(traits.ROWS):
            block, event = step.block, step.block.event
            if chosen is not None and block.sequence_number not in chosen:
                continue
            assert isinstance(event, AddData | ExecuteTransform)
            assert event.new_data is not None
            if step.after.schema is None:
                raise RejectedError("ROWS-1 schema-comes-before-data", sequence_number=block.sequence_number)
            on_progress("checking rows", Count(whole.done + count, whole.total, "rows"))
            path = paths[event.new_data.physical_hash]
            taken = process.check(path, block, step.after)
            if changelogs is not None:
                checked.append(slice_of(block, path, step.after, taken=taken))
            count += event.new_data.offset_interval.row_count
        found = RowsChecked(count)
        return found if changelogs is None else _check_changelog(chain, checked, changelogs, process, found)


def _check_changelog(
    chain: CheckedChain,
    slices: "Sequence[ChainSlice]",
    changelogs: Changelogs,
    reader: RowReader,
    found: RowsChecked,
) -> RowsChecked:
    number = chain.first.sequence_number
    unsound = changelogs.find_unsound(chain.view, first=number, new=slices, reader=reader)
    if unsound is None:
        stated = "whether rows that are taken back were there was not checked: files of earlier blocks are not here"
        return replace(found, notes=(stated,))
    if not unsound:
        return found
    if not unsound[-1].is_excused:
        return replace(found, unsound=unsound[-1].as_error())
    return replace(found, notes=(describe_unsound(unsound),))


def _rows_of(chain: CheckedChain) -> Count:
    before = 0 if chain.before is None else chain.before.next_offset
    return Count(0, chain.view.next_offset - before, "rows")
