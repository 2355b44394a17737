"""Bad rows by columns: what several steps say of a record is joined, and all of it is counted."""

import random
from itertools import groupby
from operator import attrgetter

import pytest

from odf_engines.ingest import quarantined_rows
from odf_engines.ingest.quarantined_rows import QuarantinedRow, iter_batches, join_rows
from odf_engines.ingest.reasons import list_reasons
from odf_engines.records.source_records import FieldError

NUMBERS = range(40)


def row(record: int | None, *words: str, stage: str = "read", text: str | None = None) -> QuarantinedRow:
    return QuarantinedRow(record, stage, tuple(FieldError(word, column=word[0]) for word in words), text)


def joined(*lists: list[QuarantinedRow]) -> list[tuple[int | None, str, str | None, list[str]]]:
    return [
        (each["record"], each["stage"], each["text"], [error["message"] for error in each["errors"]])
        for batch in join_rows([iter_batches(rows) for rows in lists])
        for each in batch.to_pylist()
    ]


def test_what_several_steps_say_of_a_record_is_joined_in_their_order_however_batches_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ING-6: one row per record, with all its errors."""
    numbers = random.Random(7)
    for size in (1, 2, 3, 7, 4096):
        monkeypatch.setattr(quarantined_rows, "BATCH_ROWS", size)
        lists = [
            [row(each, f"{name}{each}", f"also {name}", stage=name) for each in sorted(numbers.sample(NUMBERS, 20))]
            + [row(None, f"{name} late", stage=name, text=f"{{{name}{place}}}") for place in range(5)]
            for name in ("read", "convert", "merge")
        ]  # fmt: skip
        numbered = sorted(
            (each for rows in lists for each in rows if each.record is not None), key=attrgetter("record")
        )
        expected = []
        for record, same in groupby(numbered, key=attrgetter("record")):
            found = list(same)
            expected.append((record, found[0].stage, None, [error.message for each in found for error in each.errors]))
        expected += [
            (None, each.stage, each.text, [error.message for error in each.errors])
            for rows in lists
            for each in rows
            if each.record is None
        ]
        assert joined(*lists) == expected
    assert joined() == []
    assert joined([], [row(3, "x")], []) == [(3, "read", None, ["x"])]


def test_a_reason_counts_rows_and_not_errors_and_elements_of_lists_are_one_column() -> None:
    """ING-6: errors of one kind in one column are one reason, the commonest first."""
    rows = [
        QuarantinedRow(1, "convert", (FieldError("no number", "a[0].b", "x" * 200), FieldError("no number", "a[1].b"))),
        QuarantinedRow(2, "convert", (FieldError("gone"), FieldError("only said", "c", is_warning=True))),
        QuarantinedRow(5, "convert", (FieldError("no number", "a[7].b", "y"), FieldError("gone"))),
        QuarantinedRow(6, "convert", (FieldError("no number", "a[7].b", "y"),)),
    ]
    found = [(each.rows, each.reason, each.column, each.value, each.record) for each in list_reasons(rows)]
    assert found == [(3, "no number", "a[0].b", "x" * 100, 1), (2, "gone", None, None, 2)]
