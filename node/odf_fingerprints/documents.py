"""What a fingerprint is: a document in canonical JSON about the rows that one block adds and takes away.

Nothing in it depends on other blocks, so it is computed from one slice, and checked by whoever has that slice. What
stands after a version is folded from those before it (``folding``).

Source: clauses FP-1 to FP-9 in ``spec/plug-ins/fingerprints.md``.
"""

import math
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec

from odf_fingerprints.distinct import estimate, unpack_registers
from odf_fingerprints.histograms import DayCounts, Histogram
from odf_protocol.canonical_json import Count, Document, ShortText, Text, decode_canonical
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

OPERATION: Final = "describe"
"""What the program in the sandbox is asked for."""
MAX_BYTES: Final = 2 * 1024 * 1024
"""Of one fingerprint.  # guess: 1,000 columns, of 1 kB for rows added and half of that for rows taken away"""
MAX_COLUMNS: Final = 1_000  # guess: a slice of more columns has no fingerprint
MAX_DAYS: Final = 400  # a year of days, and some
CATEGORIES: Final = 32
"""Parts of a hash by which texts are counted: five bits of the hash of a value. The sketch gives away more: the eight
bits that choose a register, and the rank, of those hashes that have the highest rank of their register."""
MAX_SHAPES: Final = 8  # guess
MAX_TOP: Final = 8  # guess
MAX_PACKED_BYTES: Final = 1_000  # of a histogram; 40 bins of 20 bytes
ENTROPY_UNIT: Final = 2**-16  # bits
PROBABILITIES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Of the quantiles that are exact."""

Name = Annotated[str, msgspec.Meta(max_length=1_000)]
ShortValue = Annotated[str, msgspec.Meta(max_length=100)]
Packed = Annotated[bytes, msgspec.Meta(max_length=MAX_PACKED_BYTES)]
PackedDays = Annotated[bytes, msgspec.Meta(max_length=20 * MAX_DAYS)]
Counted = tuple[ShortValue, Count]
Kind = Literal["number", "time", "flag", "text", "other"]


class ColumnFingerprint(Document, frozen=True, kw_only=True):
    """One column of the rows that a version adds, takes away, or leaves.

    Attributes:
        name: Of the column.
        type: As ODF's schema has it, such as ``Int64``.
        kind: ``number`` (as doubles), ``time`` (milliseconds since 1970), ``flag`` (0 and 1), ``text``, or ``other``.
        values: How many are not null.
        nulls: How many are.
        not_finite: How many of ``values`` are NaN or infinite; they are in nothing below but ``distinct``.
        packed: The histogram; of texts, counts by 32 parts of a hash.
        distinct: How many different values there are, exactly; of rows added alone.
        sketch: HyperLogLog registers; of rows added alone.
        min: The least number or time, of rows added alone; so ``max``, and ``quantiles`` at ``PROBABILITIES``.
        entropy: Of the distribution of values, in ``ENTROPY_UNIT``; of rows added alone.
        lengths: Of texts: a histogram of their lengths in characters.
        shapes: Of texts, of rows added: the most frequent shapes (``A`` letters, ``9`` digits), most first.
        top: The most frequent values, most first; only where the dataset allows it.
    """

    name: Name
    type: ShortText
    kind: Kind
    values: Count
    nulls: Count = 0
    not_finite: Count = 0
    packed: Packed = b""
    distinct: Count | None = None
    sketch: Packed = b""
    min: ShortValue = ""
    max: ShortValue = ""
    quantiles: tuple[ShortValue, ...] = ()
    entropy: Count | None = None
    lengths: Packed = b""
    shapes: tuple[Counted, ...] = ()
    top: tuple[Counted, ...] = ()

    @property
    def rows(self) -> int:
        """Values and nulls."""
        return self.values + self.nulls

    @property
    def null_share(self) -> float:
        """0 to 1; 0 where there are no rows."""
        return self.nulls / self.rows if self.rows else 0.0

    @property
    def histogram(self) -> Histogram:
        """Of numbers and times by value, of flags and texts by category."""
        return _histogram(self.packed)

    @property
    def length_histogram(self) -> Histogram:
        """Of texts."""
        return _histogram(self.lengths)

    @property
    def minimum(self) -> float | None:
        """The least number; of rows that were folded, the beginning of the first bin."""
        if self.min:
            return float(self.min)
        counts = self.histogram.counts
        return self.histogram.edges(counts[0][0])[0] if counts and self.is_ordered else None

    @property
    def maximum(self) -> float | None:
        """The greatest number; of rows that were folded, the end of the last bin."""
        if self.max:
            return float(self.max)
        counts = self.histogram.counts
        return self.histogram.edges(counts[-1][0])[1] if counts and self.is_ordered else None

    @property
    def is_ordered(self) -> bool:
        """Whether values have an order, so that quantiles and Kolmogorov-Smirnov mean something."""
        return self.kind in {"number", "time"}

    def quantile(self, probability: float) -> float | None:
        """Return a quantile: exact where it was kept, else from the histogram; None where there is none."""
        if self.quantiles and probability in PROBABILITIES:
            return float(self.quantiles[PROBABILITIES.index(probability)])
        if not self.is_ordered or not self.packed:
            return None
        return self.histogram.quantile(probability)

    def distinct_values(self) -> float | None:
        """Return how many different values there are: exact, estimated (6.5 %), or None where it is not known."""
        if self.distinct is not None:
            return float(self.distinct)
        return estimate(unpack_registers(self.sketch)) if self.sketch else None

    @property
    def entropy_bits(self) -> float:
        """Of the values where it was kept; of rows that were folded, of the histogram."""
        if self.entropy is not None:
            return self.entropy * ENTROPY_UNIT
        counts = [count for _, count in self.histogram.counts]
        total = sum(counts)
        return -sum(count / total * math.log2(count / total) for count in counts) if total else 0.0


class RowsFingerprint(Document, frozen=True, kw_only=True):
    """Rows that a version adds, takes away, or leaves.

    Attributes:
        rows: How many.
        columns: The event time, and data columns in the order of the schema.
        days: Counts by calendar days (UTC) of the event time, packed.
        delay: Histogram of system time less event time in milliseconds, packed.
    """

    rows: Count = 0
    columns: tuple[ColumnFingerprint, ...] = ()
    days: PackedDays = b""
    delay: Packed = b""

    def column(self, name: str) -> ColumnFingerprint | None:
        """Return the column of a name; None where there is none."""
        return next((each for each in self.columns if each.name == name), None)

    @property
    def day_counts(self) -> DayCounts:
        """Rows by calendar days of the event time."""
        return DayCounts.unpack(self.days, max_days=MAX_DAYS)

    @property
    def delays(self) -> Histogram:
        """System time less event time in milliseconds: how late rows arrive; negative of times in the future."""
        return _histogram(self.delay)


NO_ROWS: Final = RowsFingerprint()


class SliceFingerprint(Document, frozen=True, kw_only=True):
    """What follows from a slice alone; see ``Fingerprint``."""

    operations: tuple[Count, Count, Count, Count]
    added: RowsFingerprint = RowsFingerprint()
    removed: RowsFingerprint = RowsFingerprint()


class Fingerprint(Document, frozen=True, kw_only=True):
    """Of one version of one dataset: what its block adds and takes away.

    Attributes:
        form: Of this document.
        dataset: Identity.
        sequence: Number of the block, which is the version.
        block: Hash of the block.
        system_time: Of the block.
        operations: Rows by kind: append, retract, correct-from, correct-to.
        added: Rows appended, and rows as they are after corrections.
        removed: Rows retracted, and rows as they were before corrections.
    """

    form: Literal["odf-node-fingerprint-1"]
    dataset: Text
    sequence: Count
    block: Text
    system_time: Text
    operations: tuple[Count, Count, Count, Count]
    added: RowsFingerprint = RowsFingerprint()
    removed: RowsFingerprint = RowsFingerprint()

    @property
    def dataset_id(self) -> DatasetId:
        """Identity of the dataset."""
        return DatasetId.parse(self.dataset)

    @property
    def block_hash(self) -> Multihash:
        """Hash of the block."""
        return Multihash.parse(self.block)

    @property
    def time(self) -> Timestamp:
        """System time of the block."""
        return Timestamp.parse(self.system_time)


def decode_fingerprint(raw: bytes) -> Fingerprint:
    """Read untrusted bytes of a fingerprint, in full: what is packed in it, too.

    Raises:
        MalformedError: Too large, another form, another spelling of the same, or counts that contradict each other.
    """
    found = decode_canonical(raw, Fingerprint, what="fingerprint", max_bytes=MAX_BYTES)
    append, retract, correct_from, correct_to = found.operations
    _check_text(found)
    for what, rows, count in (
        ("added", found.added, append + correct_to),
        ("removed", found.removed, retract + correct_from),
    ):
        if rows.rows != count:
            raise MalformedError("fingerprint", where=f"{what}.rows", expected=count, found=rows.rows)
        _check_rows(rows, what)
    return found


def decode_rows(raw: bytes) -> RowsFingerprint:
    """Read what stands after a version, as this node wrote it."""
    return decode_canonical(raw, RowsFingerprint, what="fingerprint", max_bytes=MAX_BYTES)


def _check_text(found: Fingerprint) -> None:
    for name, kind, text in (
        ("dataset", DatasetId, found.dataset),
        ("block", Multihash, found.block),
        ("systemTime", Timestamp, found.system_time),
    ):
        if str(kind.parse(text)) != text:
            raise MalformedError("fingerprint", where=name, expected="its usual text form", found=text)


def _check_rows(rows: RowsFingerprint, what: str) -> None:
    names = [column.name for column in rows.columns]
    if len(names) > MAX_COLUMNS or len({*names}) < len(names):
        raise MalformedError("fingerprint", where=f"{what}.columns", expected=f"at most {MAX_COLUMNS}, each once")
    for total in (sum(count for _, count in rows.day_counts.counts), rows.delays.total):
        if total > rows.rows:
            raise MalformedError("fingerprint", where=what, expected=f"at most {rows.rows} event times", found=total)
    for column in rows.columns:
        _check_column(column, rows.rows, f"{what}.{column.name}")


def _check_column(column: ColumnFingerprint, rows: int, where: str) -> None:
    finite = column.values - column.not_finite
    counted = {"values and nulls": (column.rows, rows), "not finite": (min(finite, 0), 0)}
    if column.kind != "other":
        counted["histogram"] = (column.histogram.total, finite)
    if column.kind == "text":
        counted["lengths"] = (column.length_histogram.total, column.values)
    for name, kinds in _OF_KINDS.items():
        if column.kind not in kinds and getattr(column, name):
            raise MalformedError("fingerprint", where=f"{where}: {name}", expected=f"none of kind {column.kind}")
    if column.kind in {"flag", "text"} and any(not 0 <= bin_ < CATEGORIES for bin_, _ in column.histogram.counts):
        raise MalformedError("fingerprint", where=f"{where}: histogram", expected=f"{CATEGORIES} categories")
    for name, (found, expected) in counted.items():
        if found != expected:
            raise MalformedError("fingerprint", where=f"{where}: {name}", expected=expected, found=found)
    if column.distinct is not None and column.distinct > column.values:
        raise MalformedError("fingerprint", where=f"{where}: distinct", expected=f"at most {column.values}")
    if column.sketch:
        unpack_registers(column.sketch)
    if column.quantiles and len(column.quantiles) != len(PROBABILITIES):
        raise MalformedError("fingerprint", where=f"{where}: quantiles", expected=len(PROBABILITIES))
    ordered = [_number(text, where) for text in (column.min, *column.quantiles, column.max) if text]
    if ordered != sorted(ordered):
        raise MalformedError("fingerprint", where=f"{where}: quantiles", expected="min, quantiles, max in their order")
    for name, counts, most in (("shapes", column.shapes, MAX_SHAPES), ("top", column.top, MAX_TOP)):
        is_sorted = [*counts] == sorted(counts, key=lambda each: (-each[1], each[0]))
        if len(counts) > most or not is_sorted or sum(count for _, count in counts) > column.values:
            raise MalformedError("fingerprint", where=f"{where}: {name}", expected=f"at most {most}, most first")


_OF_KINDS: Final = {
    "packed": {"number", "time", "flag", "text"},
    "lengths": {"text"},
    "min": {"number", "time", "flag"},
    "max": {"number", "time", "flag"},
    "quantiles": {"number", "time", "flag"},
}
"""What only columns of some kinds have."""


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or repr(number) != text:
        raise MalformedError("fingerprint", where=where, expected="a finite number, as short as it can be", found=text)
    return number


@lru_cache(maxsize=4_096)
def _histogram(packed: bytes) -> Histogram:
    return Histogram.unpack(packed)
