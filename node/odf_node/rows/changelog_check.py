"""Whether blocks take back rows that were never given, over the slices of a whole chain.

Only the rows that new blocks take back are looked for; a chain of appends alone costs nothing. Slices are read by the
process that reads slices of others, which gives 17 bytes for each row. They are kept by the object, under a key of this
node, so that whoever follows a chain reads no slice twice.

Source: clauses ROWS-12 to ROWS-14 in ``spec/extensions/acceptance.md``.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from odf_node.ports.rows import RowsCache
from odf_node.rows.chain_slices import ChainSlice, UnsoundBlock
from odf_node.rows.slice_process import RowReader
from odf_protocol.changelog_balance import CHANGE, ChangelogBalance, UnsoundRows, are_taken, taken_rows
from odf_protocol.errors import MalformedError, UnavailableError
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

_MAX_ROWS: Final = 4_000_000
"""Rows taken back that are looked for at once; for more, the chain is gone through again.  # guess: some 400 MB"""
_MAX_CHARACTERS: Final = 80  # guess: of a value that a message shows
_FORM_DIGITS: Final = 16  # guess: keys and vocabularies that one home ever has are told apart
_MAX_COLUMNS: Final = 12  # guess: as many as people read

_Changes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ChangelogCheck:
    """Looks for what new slices of one chain take back; ``columns`` are those that say what a row is."""

    reader: RowReader
    cache: RowsCache
    vocabulary: Vocabulary
    columns: tuple[str, ...]
    _found: dict[Multihash, Path] = field(default_factory=dict)

    def find_unsound(self, earlier: Sequence[ChainSlice], new: Sequence[ChainSlice]) -> list[UnsoundBlock]:
        """Find the blocks that take back a row that is not there, up to the first one that is not excused.

        Args:
            earlier: All slices of the chain before the new ones, in order; what they take back was judged before.
            new: Those that are judged, in order.

        Raises:
            RejectedError, MalformedError, UnsupportedError: A slice costs too much to read.
            UnavailableError: Somebody ended the process.
        """
        counted = [each if each.taken is not None else self._count(each) for each in new]
        taking = [each for each in counted if each.taken]
        if not taking:
            return []
        parts = -(-sum(each.taken or 0 for each in taking) // _MAX_ROWS)
        found: dict[int, UnsoundRows] = {}
        # What comes after the last block that takes anything is of no matter, nor after one that is rejected.
        end = 1 + max(place for place, each in enumerate(counted) if each.taken)
        for part in range(parts):
            rows = [taken_rows(self.read_changes(each), part=part, parts=parts) for each in taking]
            balance = ChangelogBalance(np.concatenate(rows), part=part, parts=parts)
            del rows
            for each in earlier:
                balance.add(self.read_changes(each))
            for place, each in enumerate(counted[:end]):
                unsound = balance.add(self.read_changes(each))
                if unsound is not None:
                    found[place] = unsound.together(found[place]) if place in found else unsound
                    if not UnsoundBlock(each, found[place]).is_excused:
                        end = place + 1
                        break
        blocks = [UnsoundBlock(counted[place], found[place]) for place in sorted(found) if place < end]
        return [*blocks[:-1], *(replace(each, values=self._show(each)) for each in blocks[-1:])]

    def _count(self, each: ChainSlice) -> ChainSlice:
        return replace(each, taken=int(np.count_nonzero(are_taken(self.read_changes(each)["op"]))))

    def _show(self, block: UnsoundBlock) -> str:
        shown, path = self.columns[:_MAX_COLUMNS], block.where.path
        rows = self.reader.read_window(
            path, first=block.rows.row, count=1, columns=shown, max_characters=_MAX_CHARACTERS
        )
        cells = zip(shown, rows[0] if rows else [], strict=False)
        stated = ", ".join(f"{name} {'null' if cell is None else repr(cell[0])}" for name, cell in cells)
        return f"({stated}{', ...' if len(self.columns) > len(shown) else ''})"

    def read_changes(self, each: ChainSlice) -> _Changes:
        """Give the rows of a slice as ``CHANGE`` has them; computed where they are not kept."""
        path = self._found.get(each.object_hash)
        if path is not None:  # which compared its checksum already
            return np.memmap(path, CHANGE, "r")
        key = self.cache.fingerprint_key()
        named = json.dumps([key.hex(), *self.vocabulary.columns]).encode()
        form = f".changes-{hashlib.sha3_256(named).hexdigest()[:_FORM_DIGITS]}"
        path = self.cache.find(each.object_hash, form)
        if path is None:
            try:
                with self.cache.making(each.object_hash, form) as file:
                    self._compute(each, key, file)
            except UnavailableError:  # there is no room, for which nothing is rejected
                held = io.BytesIO()
                self._compute(each, key, held)
                _require_whole(held.getbuffer().nbytes, each)
                return np.frombuffer(held.getbuffer(), CHANGE)
            path = self.cache.find(each.object_hash, form)
        if path is None:
            raise UnavailableError(f"the rows of block {each.sequence_number} were removed while they were looked at")
        try:
            _require_whole(path.stat().st_size, each)
        except MalformedError:
            self.cache.drop(each.object_hash)
            raise
        self._found[each.object_hash] = path
        return np.memmap(path, CHANGE, "r")

    def _compute(self, each: ChainSlice, key: bytes, target: BinaryIO) -> None:
        self.reader.fingerprint(each.path, key=key, vocabulary=self.vocabulary, target=target)


def _require_whole(size_bytes: int, each: ChainSlice) -> None:
    if size_bytes != each.rows * CHANGE.itemsize:
        where = f"block {each.sequence_number}"
        raise MalformedError("slice", where=where, expected=f"{each.rows} rows", found="a reader that gives others")
