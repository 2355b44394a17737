"""A stage for blocks in a file without a name, of which a crash leaves nothing behind."""

import struct
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, overload

from odf_node.ports.block_stage import BlockStage, ProposedBlock, StagedBlock
from odf_node.records.errors import mapped_os_errors

_HEADER: Final = struct.Struct("<32sBIII")
"""Digest, traits, three lengths; those of signature and record are one more than they are, 0 where there is none."""
_IN_MEMORY_BYTES: Final = 1024 * 1024
"""Fewer bytes make no file.  # guess: ordinary pulls bring a few blocks"""
_PAGE_BYTES: Final = 256 * 1024


class FileStage(BlockStage):
    """A stage of which memory holds nine bytes a block; what is long goes to a file in ``folder``."""

    def __init__(self, folder: Path) -> None:
        """Make an empty stage; the folder is needed once there is much to keep."""
        self._folder = folder
        self._ends = array("Q")
        self._traits = bytearray()
        self._all_traits = 0
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, mode="w+b", dir=str(folder))  # noqa: SIM115 - kept

    def append(self, block: StagedBlock) -> None:
        proposed = block.proposed
        signature, record = proposed.signature, proposed.step_record
        header = _HEADER.pack(
            block.digest,
            block.traits,
            len(proposed.raw),
            0 if signature is None else len(signature) + 1,
            0 if record is None else len(record) + 1,
        )
        data = b"".join((header, proposed.raw, signature or b"", record or b""))
        start = self._start_of(len(self._ends))
        with mapped_os_errors(self._folder):
            if self._file.tell() != start:
                self._file.seek(start)
            self._file.write(data)
        self._ends.append(start + len(data))
        self._traits.append(block.traits)
        self._all_traits |= block.traits

    def iter_staged(self, first: int = 0) -> Iterator[StagedBlock]:
        return self._iter_numbers(range(first, len(self._ends)))

    @property
    def traits(self) -> int:
        return self._all_traits

    def iter_with(self, wanted: int) -> Iterator[StagedBlock]:
        if not self._all_traits & wanted:
            return iter(())
        return self._iter_numbers(number for number, traits in enumerate(self._traits) if traits & wanted)

    def _iter_numbers(self, numbers: Iterable[int]) -> Iterator[StagedBlock]:
        page, start, end = b"", 0, 0
        for number in numbers:
            begins = self._start_of(number)
            if not start <= begins < end:
                start, last = begins, max(number, bisect_right(self._ends, begins + _PAGE_BYTES) - 1)
                end = self._ends[last]
                page = self._read(start, end)
            yield _decode(page, begins - start)

    def get_staged(self, position: int) -> StagedBlock:
        place = range(len(self._ends))[position]
        return _decode(self._read(self._start_of(place), self._ends[place]), 0)

    def clear(self) -> None:
        self._forget()
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        self._forget()
        with suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[ProposedBlock]:
        return (staged.proposed for staged in self.iter_staged())

    @overload
    def __getitem__(self, place: int) -> ProposedBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ProposedBlock]: ...
    def __getitem__(self, place: int | slice) -> ProposedBlock | Sequence[ProposedBlock]:
        if isinstance(place, slice):
            return [self.get_staged(number).proposed for number in range(len(self._ends))[place]]
        return self.get_staged(place).proposed

    def _forget(self) -> None:
        del self._ends[:]
        self._traits.clear()
        self._all_traits = 0

    def _start_of(self, position: int) -> int:
        return self._ends[position - 1] if position else 0

    def _read(self, start: int, end: int) -> bytes:
        with mapped_os_errors(self._folder):  # the newest blocks may have to be written first
            self._file.seek(start)
            return self._file.read(end - start)


def _decode(page: bytes, start: int) -> StagedBlock:
    digest, traits, raw_bytes, signature_bytes, record_bytes = _HEADER.unpack_from(page, start)
    raw_end = start + _HEADER.size + raw_bytes
    signature_end = raw_end + max(signature_bytes - 1, 0)
    raw = page[start + _HEADER.size : raw_end]
    signature = page[raw_end:signature_end] if signature_bytes else None
    record = page[signature_end : signature_end + record_bytes - 1] if record_bytes else None
    return StagedBlock(ProposedBlock(raw, signature, record), digest, traits)
