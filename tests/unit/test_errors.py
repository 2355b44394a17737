import pytest

from odf_protocol.chain import ChainWarning
from odf_protocol.errors import (
    CorruptError,
    MalformedError,
    NotFoundError,
    OdfError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MalformedError("block"), "malformed block"),
        (MalformedError("block", where=7, expected=1, found=2), "malformed block at byte 7: expected 1, found 2"),
        (MalformedError("name", where="line 3", found="-"), "malformed name at line 3: found -"),
        (UnsupportedError("version"), "unsupported version"),
        (UnsupportedError("version", found=1, supported=(2, 3)), "unsupported version: 1 (supported: (2, 3))"),
        (RejectedError("R-1 rule", expected=1, found=2), "breaks R-1 rule: expected 1, found 2"),
        (RejectedError("R-1 rule", sequence_number=4, found=2), "block 4 breaks R-1 rule: found 2"),
        (ChainWarning("R-1 rule", 4, 1, None), "block 4 breaks R-1 rule: expected 1"),
    ],
)
def test_message_states_expected_then_found(error: object, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    "error_type", [MalformedError, UnsupportedError, RejectedError, NotFoundError, UnavailableError, CorruptError]
)
def test_every_error_is_in_the_tree(error_type: type[Exception]) -> None:
    assert issubclass(error_type, OdfError)


def test_message_is_one_short_line_whatever_a_stranger_sent() -> None:
    message = str(MalformedError("text", found="a\nb\x1b[31m\u202e" + "x" * 10_000))
    assert message.isprintable()
    assert message.startswith("malformed text: found a\\nb\\x1b[31m\\u202exxx")
    assert len(message) < 300
