"""Records of a CSV file without quotes: its lines that are not empty, found many at once.

Source: spec/ingest.md ING-2.
"""

import mmap
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from odf_engines.records.source_records import OriginalRecord

_BLOCK_BYTES: Final = 4 * 1024 * 1024  # guess: places of its lines take up to a hundred MiB
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
        block = data[position : position + size]
        is_last = position + size >= len(data)
        if not is_last:
            block = block[: max(block.rfind(b"\n"), block.rfind(b"\r")) + 1]
            if not block:
                size *= 2
                continue
        found = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero((found == _LF) | (found == _CR))
        starts = np.concatenate([[0], ends + 1])
        ends = np.append(ends, len(block))
        starts, ends = starts[ends > starts], ends[ends > starts]
        line_feeds = np.flatnonzero(found == _LF)
        while number is not None and number < first + len(starts):
            start, end = starts[number - first], ends[number - first]
            yield OriginalRecord(number, line + int(np.searchsorted(line_feeds, start)), block[start:end])
            number = next(wanted, None)
        first, line, position = first + len(starts), line + len(line_feeds), position + len(block)
