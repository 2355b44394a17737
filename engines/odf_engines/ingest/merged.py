"""What a merge of converted records gives, and which records it takes.

Source: spec/ingest.md ING-8 to ING-12.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from odf_engines.contract import IngestRequest
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.plain_append import iter_appended
from odf_engines.ingest.quarantined_rows import BadRows


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that is computed as its parts are read, in this order.

    Attributes:
        changes: Batches of the operation and the values, in the order of offsets.
        refused: Rows that were left out, each by number.
        state: Batches of the values of the new state, sorted by key; None where the strategy keeps none.
    """

    changes: Iterator[pa.RecordBatch]
    refused: Sequence[BadRows] = ()
    state: Iterator[pa.RecordBatch] | None = None


Merge = Callable[[IngestRequest, Path, Columns], Merged | None]
"""Merges a file of converted records, by number, with the state of a request; None: it is for another engine."""


def append_in_memory(request: IngestRequest, records: Path, columns: Columns) -> Merged | None:
    """Append records; None where they are not in order, and too many to be ordered in memory."""
    changes = iter_appended(records, columns, request.fallback_event_time)
    return None if changes is None else Merged(changes)
