"""What is read of a fingerprint that others wrote, and what stands after versions."""

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from odf_fingerprints.documents import ColumnFingerprint, Fingerprint, RowsFingerprint, decode_fingerprint
from odf_fingerprints.folding import fold_rows
from odf_fingerprints.histograms import MAX_BITS, DayCounts, Histogram
from odf_fingerprints.signing import decode_signed, sign_fingerprint
from odf_fingerprints.views import rows_values, show_number
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.signatures import Purpose, sign_document

SEED = bytes(range(32))
DATASET = "did:odf:fed01" + "ab" * 32
BLOCK = "f1620" + "cd" * 32


def numbers(*counts: tuple[int, int], nulls: int = 0) -> ColumnFingerprint:
    histogram = Histogram(0, 0, counts)
    return ColumnFingerprint(
        name="n", type="Int64", kind="number", values=histogram.total, nulls=nulls, packed=histogram.pack()
    )


def rows(*columns: ColumnFingerprint) -> RowsFingerprint:
    count = columns[0].rows
    days = DayCounts(0, ((18_000, count),)).pack()
    return RowsFingerprint(rows=count, columns=columns, days=days)


def fingerprint(**changed: Any) -> Fingerprint:
    added = rows(numbers((1, 3), (4, 2), nulls=1))
    usual = {
        "form": "odf-node-fingerprint-1",
        "dataset": DATASET,
        "sequence": 4,
        "block": BLOCK,
        "system_time": "2026-01-02T03:04:05Z",
        "operations": (6, 0, 0, 0),
        "added": added,
    }
    return Fingerprint(**{**usual, **changed})


def test_signed_fingerprint_is_read_as_it_was_written() -> None:
    """FP-3."""
    raw = sign_fingerprint(SEED, fingerprint())
    assert decode_signed(raw).fingerprint == fingerprint()
    assert raw == sign_fingerprint(SEED, fingerprint())


def test_signature_for_another_purpose_is_rejected() -> None:
    """FP-3."""
    payload = encode_canonical(fingerprint())
    with pytest.raises(RejectedError):
        decode_signed(sign_document(SEED, Purpose.AUDIT, payload).to_bytes())
    raw = bytearray(sign_fingerprint(SEED, fingerprint()))
    raw[-20] ^= 1
    with pytest.raises(RejectedError):
        decode_signed(bytes(raw))


def with_column(**changed: Any) -> dict[str, Any]:
    column = msgspec.structs.replace(numbers((1, 3), (4, 2), nulls=1), **changed)
    return {"added": msgspec.structs.replace(rows(column), rows=6)}


@pytest.mark.parametrize(
    "changed",
    [
        {"operations": (5, 0, 0, 0)},
        {"operations": (6, 1, 0, 0)},
        {"dataset": "did:odf:FED01" + "ab" * 32},
        {"dataset": "x"},
        {"block": BLOCK[:-1]},
        {"system_time": "2026-01-02T03:04:05.000Z"},
        {"sequence": -1},
        with_column(nulls=2),
        with_column(not_finite=1),
        with_column(not_finite=9),
        with_column(packed=Histogram(0, 0, ((1, 6),)).pack()),
        with_column(packed=b"\x01"),
        with_column(kind="flag", packed=Histogram(0, 0, ((1, 3), (32, 2))).pack()),
        with_column(kind="text"),
        with_column(kind="shape"),
        with_column(distinct=6),
        with_column(sketch=b"\x00" * 3),
        with_column(min="1e0"),
        with_column(min="nan"),
        with_column(min="inf"),
        with_column(min="2.0", max="1.0"),
        with_column(quantiles=("1.0",)),
        with_column(quantiles=("1.0",) * 6 + ("0.5",)),
        with_column(name="n" * 1_001),
        with_column(shapes=(("a", 1), ("b", 2))),
        with_column(shapes=(("a", 9),)),
        with_column(top=(("b", 1), ("a", 1))),
        with_column(top=tuple((str(each), 0) for each in range(9))),
        with_column(lengths=b"any"),
        with_column(kind="other", packed=b"any"),
        with_column(kind="other"),
        with_column(kind="other", packed=b"", max="1.0"),
        with_column(kind="text", lengths=Histogram(0, 0, ((1, 5),)).pack(), min="1.0"),
        {"added": rows(numbers((1, 6)), numbers((1, 6)))},
        {"added": msgspec.structs.replace(rows(numbers((1, 6))), days=DayCounts(0, ((1, 7),)).pack())},
        {"added": msgspec.structs.replace(rows(numbers((1, 6))), delay=Histogram(0, 0, ((1, 7),)).pack())},
    ],
    ids=str,
)
def test_fingerprint_that_contradicts_itself_is_rejected(changed: dict[str, Any]) -> None:
    """FP-9."""
    raw = msgspec.json.encode(fingerprint(**changed), order="sorted")
    with pytest.raises(MalformedError):
        decode_fingerprint(raw)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw + b" ",
        lambda raw: raw.replace(b'"sequence":4', b'"sequence":4.0'),
        lambda raw: raw.replace(b'"sequence":4', b'"sequence":4,"sequence":4'),
        lambda raw: raw.replace(b'{"added"', b'{"a":1,"added"'),
        lambda raw: raw[:-1],
        lambda raw: b"[" * 100_000,
        lambda raw: raw.replace(b'"n"', b'"\xff"'),
        lambda raw: b" " * (2 * 1024 * 1024 + 1),
    ],
)
def test_other_spelling_of_a_fingerprint_is_rejected(change: Callable[[bytes], bytes]) -> None:
    """FP-9."""
    with pytest.raises(MalformedError):
        decode_fingerprint(change(encode_canonical(fingerprint())))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bits", [0, 3, MAX_BITS])
@pytest.mark.parametrize("kind", ["number", "time"])
def test_greatest_bin_of_doubles_ends_at_a_finite_number(sign: int, bits: int, kind: str) -> None:
    """FP-9, FP-15: what a peer states there, and what is left of it after rows were taken away, can be shown."""
    packed = Histogram(bits, 0, ((sign * (1024 << bits), 5),)).pack()
    stated = fingerprint(**with_column(packed=packed, kind=kind))
    found = decode_fingerprint(encode_canonical(stated))
    taken = rows(msgspec.structs.replace(numbers((1, 1)), kind=kind))
    after = fold_rows(fold_rows(RowsFingerprint(), found.added, RowsFingerprint()), RowsFingerprint(), taken)
    for each in (found.added, after):
        (column,) = each.columns
        for value in (column.minimum, column.maximum, column.quantile(0.5)):
            assert value is not None
            assert math.isfinite(value)
            assert 0 < len(show_number(column, value)) < 30
        json.dumps(rows_values(each), allow_nan=False)


def test_what_stands_is_what_was_added_less_what_was_taken_away() -> None:
    """FP-5."""
    first = fold_rows(RowsFingerprint(), rows(numbers((1, 3), (4, 2), nulls=1)), RowsFingerprint())
    assert first.rows == 6
    second = fold_rows(first, rows(numbers((2, 5))), rows(numbers((1, 2), nulls=1)))
    column = second.column("n")
    assert column is not None
    assert second.rows == 8
    assert (column.values, column.nulls) == (8, 0)
    assert column.histogram.counts == ((1, 1), (2, 5), (4, 2))
    assert column.distinct_values() is None
    assert second.day_counts.counts == ((18_000, 8),)


def test_column_that_comes_later_is_null_in_the_rows_before_it() -> None:
    """FP-5."""
    late = ColumnFingerprint(name="m", type="Int64", kind="number", values=2, packed=Histogram(0, 0, ((1, 2),)).pack())
    before = fold_rows(RowsFingerprint(), rows(numbers((1, 3))), RowsFingerprint())
    after = fold_rows(before, rows(numbers((1, 2)), late), RowsFingerprint())
    column = after.column("m")
    assert column is not None
    assert (column.values, column.nulls) == (2, 3)


def test_delays_are_not_known_once_rows_were_taken_away() -> None:
    """FP-5: of a row that is taken away the delay is that of the block that does so, which is another bin."""
    came, taken = Histogram(0, 0, ((3, 10),)).pack(), Histogram(0, 0, ((20, 10),)).pack()
    added = msgspec.structs.replace(rows(numbers((1, 10))), delay=came)
    removed = msgspec.structs.replace(rows(numbers((1, 9))), delay=taken)
    grown = fold_rows(fold_rows(RowsFingerprint(), added, RowsFingerprint()), added, RowsFingerprint())
    assert grown.delays.counts == ((3, 20),)
    one_left = fold_rows(fold_rows(RowsFingerprint(), added, RowsFingerprint()), RowsFingerprint(), removed)
    assert (one_left.rows, one_left.delay) == (1, b"")
    assert fold_rows(one_left, added, RowsFingerprint()).delay == b""
    empty = fold_rows(one_left, RowsFingerprint(), rows(numbers((1, 1))))
    assert fold_rows(empty, added, RowsFingerprint()).delays.counts == ((3, 10),)
