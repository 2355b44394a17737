"""Reasons of corrections, of this node and of strangers (ING-28)."""

import pytest

from odf_protocol.block_notes import CORRECTION, find_reason, note_correction
from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes


def event(reason: object) -> AddData:
    return AddData(extra=ExtraAttributes.of({CORRECTION: {"reason": reason}}))


def test_reason_is_read_as_it_was_written() -> None:
    extra = note_correction(" the letter of 3\u00a0May, Z\u00fcrich ")
    assert find_reason(AddData(extra=extra)) == "the letter of 3\u00a0May, Z\u00fcrich"


@pytest.mark.parametrize("reason", ["two\nlines", "two\u2028lines", "\x1b[31mred", "\u202eback", "x" * 1_001])
def test_reason_of_more_than_a_line_is_neither_written_nor_shown(reason: str) -> None:
    with pytest.raises(MalformedError, match="reason of a correction"):
        note_correction(reason)
    assert find_reason(event(reason)) is None


@pytest.mark.parametrize("reason", [None, 5, ["x"], {}])
def test_reason_of_a_stranger_that_is_no_text_is_none(reason: object) -> None:
    assert find_reason(event(reason)) is None
