"""Texts, counted by their hashes: how many there are of each, how long they are, and which shapes they have.

Of a text itself nothing is kept, but where the dataset allows that frequent values are stated.

Source: clauses FP-4, FP-8 and FP-14 in ``spec/plug-ins/fingerprints.md``.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_fingerprints.counted_values import CountedValues, count_hashes, hash_words
from odf_fingerprints.distinct import REGISTERS, registers_of
from odf_fingerprints.documents import CATEGORIES, MAX_SHAPES, MAX_TOP, Counted
from odf_fingerprints.entropy import entropy_of
from odf_fingerprints.histograms import MIN_FLOOR, Histogram
from odf_fingerprints.number_bins import histogram_of
from odf_protocol.row_fingerprints import RowFingerprints

MAX_EXACT_TEXTS: Final = 1 << 23
"""Different texts of a column that are counted one by one; of more, what joins is joined.  # guess: as of numbers"""
_HELD: Final = 1 << 22
"""Hashes that wait to be joined.  # guess: 64 MB"""
_KEY: Final = b"odf-node fingerprint of texts v1"
"""Known to all: hashes are compared between nodes, and of each only five bits and a rank are given away."""
SAMPLE_ROWS: Final = 1 << 14
"""Rows whose shapes are looked at, evenly over all.  # guess: a share of 1 % is met a hundred times"""
_SHAPED_CHARACTERS: Final = 256
_SHAPE_CHARACTERS: Final = 32
_CLASSES: Final = (
    (r"[\p{Ll}\p{Lt}\p{Lm}\p{Lo}\p{M}]+", "a"),
    (r"\p{Lu}+", "A"),
    (r"\p{N}+", "9"),
    (r"\s+", " "),
    (r"[^ -~]+", "?"),
)
_MAX_SHOWN: Final = 1 << 16
"""Different values of a column whose frequent values are stated.  # guess: what has more has no frequent ones"""
_MAX_SHOWN_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class TextFigures:
    """What was counted of texts; see ``ColumnFingerprint``."""

    categories: Histogram
    lengths: Histogram
    registers: npt.NDArray[np.uint8]
    distinct: int | None
    entropy: int | None
    shapes: tuple[Counted, ...]
    top: tuple[Counted, ...]


class TextCounts:
    """Counts texts.

    Args:
        rows: How many rows there will be, of all kinds.
        is_sampled: Whether shapes are looked at.
        is_shown: Whether frequent values are stated.
    """

    def __init__(self, rows: int, *, is_sampled: bool, is_shown: bool) -> None:
        self._hasher = RowFingerprints(_KEY)
        self._step = max(1, -(-rows // SAMPLE_ROWS)) if is_sampled else 0
        self._row = 0
        self._dictionary: pa.Array | None = None
        self._places = np.zeros(0, np.int64)
        self._held: list[CountedValues] = []
        self._held_count = 0
        self._counted: CountedValues | None = CountedValues(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._registers = np.zeros(REGISTERS, np.uint8)
        self._categories = np.zeros(CATEGORIES, np.int64)
        self._lengths: Counter[int] = Counter()
        self._sampled: list[pa.Array] = []
        self._shown: Counter[str] | None = Counter() if is_shown else None

    def add(self, array: pa.DictionaryArray) -> None:
        """Count the texts of some rows, as places in a dictionary; nulls are rows, too."""
        if self._step:
            sampled = array[-self._row % self._step :: self._step]
            self._sampled.append(pc.utf8_slice_codeunits(sampled.dictionary_decode(), 0, _SHAPED_CHARACTERS))
        self._row += len(array)
        if self._dictionary is None or not self._dictionary.equals(array.dictionary):
            self._count_dictionary()
            self._dictionary, self._places = array.dictionary, np.zeros(len(array.dictionary), np.int64)
        indices = array.indices.drop_null() if array.null_count else array.indices
        self._places += np.bincount(np.asarray(indices), minlength=self._places.size)

    def _count_dictionary(self) -> None:
        """Count the texts of the dictionary of some rows, each once or not at all; it may have one twice."""
        if self._dictionary is None:
            return
        used = np.flatnonzero(self._places)
        texts, counts = self._dictionary.take(pa.array(used)), self._places[used]
        batch = pa.RecordBatch.from_arrays([texts.cast(pa.large_string())], names=[""])
        hashes = hash_words(np.ascontiguousarray(self._hasher.of(batch, ())["high"]))
        self._count(CountedValues(hashes, counts))
        sizes = np.asarray(pc.utf8_length(texts)).astype(np.int64)
        found, places = np.unique(sizes, return_inverse=True)
        by_size = np.zeros(found.size, np.int64)
        np.add.at(by_size, places, counts)
        self._lengths.update(dict(zip(found.tolist(), by_size.tolist(), strict=True)))
        if self._shown is not None:
            for text, count in zip(texts.to_pylist(), counts.tolist(), strict=True):
                self._shown[text] += count
            if len(self._shown) > _MAX_SHOWN:
                self._shown = None

    def finish(self) -> TextFigures:
        """Return what was counted."""
        self._count_dictionary()
        self._join()
        places = [(place, count) for place, count in enumerate(self._categories.tolist()) if count]
        sizes = sorted(self._lengths.items())
        lengths = CountedValues(
            np.array([size for size, _ in sizes], np.float64), np.array([count for _, count in sizes], np.int64)
        )
        return TextFigures(
            categories=Histogram(0, MIN_FLOOR, tuple(places)),
            lengths=histogram_of(lengths),
            registers=self._registers,
            distinct=None if self._counted is None else len(self._counted.values),
            entropy=None if self._counted is None else entropy_of(self._counted.counts),
            shapes=_most(Counter(_shapes_of(self._sampled)), MAX_SHAPES),
            top=_most(
                {text: count for text, count in (self._shown or {}).items() if len(text) <= _MAX_SHOWN_CHARACTERS},
                MAX_TOP,
            ),
        )

    def _count(self, counted: CountedValues) -> None:
        np.add.at(self._categories, (counted.values % np.uint64(CATEGORIES)).astype(np.int64), counted.counts)
        np.maximum(self._registers, registers_of(counted.values), out=self._registers)
        if self._counted is None:
            return
        self._held.append(counted)
        self._held_count += counted.values.size
        if self._held_count > _HELD:
            self._join()

    def _join(self) -> None:
        if self._counted is None or not self._held:
            return
        parts = [self._counted, *self._held]
        self._held, self._held_count = [], 0
        values, counts = (np.concatenate(each) for each in ([p.values for p in parts], [p.counts for p in parts]))
        joined = count_hashes(values, counts)
        self._counted = joined if joined.values.size <= MAX_EXACT_TEXTS else None


def _shapes_of(sampled: list[pa.Array]) -> list[str]:
    if not sampled:
        return []
    shaped = pa.concat_arrays([each.cast(pa.large_string()) for each in sampled]).drop_null()
    for pattern, letter in _CLASSES:
        shaped = pc.replace_substring_regex(shaped, pattern, letter)
    found: list[str] = pc.utf8_slice_codeunits(shaped, 0, _SHAPE_CHARACTERS).to_pylist()
    return found


def _most(counts: "Counter[str] | dict[str, int]", most: int) -> tuple[Counted, ...]:
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:most])
