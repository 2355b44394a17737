import pytest

from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.coverage import ChainProgress, decode_progress
from odf_protocol.errors import CorruptError
from support.chains import ChainBuilder, later, ordinary_derivative_events, ordinary_root_events


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (ChainBuilder.root(), ChainProgress(0, None)),
        (ChainBuilder.root(*ordinary_root_events(3)), ChainProgress(30, later(29))),
        (ChainBuilder.derivative(*ordinary_derivative_events(4)), ChainProgress(40, later(3))),
    ],
    ids=["empty", "root", "derivative"],
)
def test_progress_is_that_of_the_whole_state(chain: ChainBuilder, expected: ChainProgress) -> None:
    state = chain.state()
    assert state is not None
    found = decode_progress(encode_state(state))
    assert found == expected
    whole = decode_state(encode_state(state))
    assert (found.row_count - 1 if found.row_count else None, found.watermark) == (whole.last_offset, whole.watermark)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"last_offset": "9"}', b'{"last_offset": 1.5}', b'{"watermark": "noon"}', b'{"watermark": 1}'],
)
def test_damaged_state_is_named_as_such(data: bytes) -> None:
    with pytest.raises(CorruptError, match="stored chain state"):
        decode_progress(data)
