"""Records of a CSV file without quotes: its lines that are not empty, found many at once.

Source: spec/ingest.md ING-2.
"""

import mmap
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from odf_engines.records.source_records import OriginalRecord

_BLOCK_BYTES: Final = 4 * 1024 * 1024  # guess: places of its lines take up to a hundred MiB
_AT_ONCE: Final = 4096  # guess: numbers of records, of which the rows are held meanwhile
_LF, _CR = b"\n"[0], b"\r"[0]


def iter_lines(
    data: bytes | mmap.mmap, numbers: Iterable[int], *, position: int = 0, first: int = 1
) -> Iterator[OriginalRecord]:
    """Give records by their numbers.

    Args:
        data: The file.
        numbers: Ascending.
        position: Where its first line begins.
        first: Number of the first record.
    """
    wanted = iter(numbers)
    number = next(wanted, None)
    line, size = 1, _BLOCK_BYTES
    while number is not None and position < len(data):
        end = position + size
        if end < len(data):
            last_line_end = data.rfind(b"\n", position, end)
            if last_line_end < 0:
                last_line_end = data.rfind(b"\r", position, end)
            if last_line_end < 0:
                size *= 2
                continue
            end = last_line_end + 1
        block = data[position:end]
        found = np.frombuffer(block, np.uint8)
        ends = line_feeds = np.flatnonzero(found == _LF)
        if b"\r" in block:
            ends = np.flatnonzero((found == _LF) | (found == _CR))
        starts = np.concatenate([[0], ends + 1])
        ends = np.append(ends, len(block))
        if np.any(is_empty := starts == ends):
            starts, ends = starts[~is_empty], ends[~is_empty]
        while number is not None and number < first + len(starts):
            some = [number]
            for number in islice(wanted, _AT_ONCE - 1):
                if number >= first + len(starts):
                    break
                some.append(number)
            else:
                number = next(wanted, None)
            places = np.array(some) - first
            lines = line + np.searchsorted(line_feeds, starts[places])
            spans = starts[places].tolist(), ends[places].tolist()
            for found_number, found_line, start, stop in zip(some, lines.tolist(), *spans, strict=True):
                yield OriginalRecord(found_number, found_line, block[start:stop])
        first, line, position = first + len(starts), line + len(line_feeds), position + len(block)
