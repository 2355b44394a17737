"""What a file of an engine must be, and what a check of it found; ``output_rows`` reads it.

Source: clauses ENGINE-6 and ENGINE-19 in ``spec/extensions/engine-contract.md``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_protocol.events import OffsetInterval
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

OPERATIONS = 4
"""ODF "Operation types": append, retract, correct-from, correct-to."""


@dataclass(frozen=True, slots=True)
class RowsFound:
    """What a check saw: the logical hash of a slice, where its columns have one, and its rows by operation."""

    logical_hash: Multihash | None = None
    operations: tuple[int, ...] = (0,) * OPERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCheck:
    """A file of rows that can be read at bounded cost.

    Attributes:
        max_decoded_bytes: Of all its values as Arrow holds them.
        schema: Of its columns; None: any.
        rows: How many it has; None: any.
    """

    max_decoded_bytes: int
    schema: "pa.Schema | None" = None
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsCheck:
    """A slice: exactly these columns and rows, and system columns as they must be.

    Attributes:
        schema: Of the dataset, system columns first.
        vocabulary: Names of the system columns.
        interval: Offsets of its rows.
        system_time_ms: What every row must carry.
        max_rows: Bounds its rows.
        max_decoded_bytes: Bounds all its values as Arrow holds them.
    """

    schema: "pa.Schema"
    vocabulary: Vocabulary
    interval: OffsetInterval
    system_time_ms: int
    max_rows: int
    max_decoded_bytes: int
