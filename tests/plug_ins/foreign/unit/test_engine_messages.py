"""Messages of ODF's own engine contract: clauses GRPC-2 and GRPC-3 of ``spec/plug-ins/engine-grpc.md``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_foreign.grpc.carrier import unwrap, wrap
from odf_protocol.engine_messages import (
    MAX_REQUEST_SIZE_BYTES,
    RawQueryRequest,
    RawQueryResponseRoot,
    TransformResponseRoot,
    WireTransformRequest,
    decode_request,
)
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import OffsetInterval, SqlQueryStep
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root
from support.kamu import KAMU
from support.wire_strategies import tables

RECORDED = KAMU / "engine"  # what the reference implementation 0.265.0 sent


@pytest.mark.parametrize(
    ("kind", "name"), [(WireTransformRequest, "transform-request.bin"), (RawQueryRequest, "raw-query-request.bin")]
)
def test_recorded_request_is_read_and_written_back_byte_for_byte(kind, name):
    raw = (RECORDED / name).read_bytes()
    assert encode_root(decode_request(kind, raw)) == raw


def test_recorded_request_says_what_was_asked():
    message = decode_request(WireTransformRequest, (RECORDED / "transform-request.bin").read_bytes())
    (source,) = message.query_inputs
    assert (message.dataset_alias, message.next_offset, message.prev_checkpoint_path) == ("large.cities", 0, None)
    assert (message.new_data_path, message.new_checkpoint_path) == (
        "/opt/engine/out/data",
        "/opt/engine/out/checkpoint",
    )
    assert (source.query_alias, source.offset_interval) == ("c", OffsetInterval(start=0, end=2))
    assert source.schema_file.startswith("/opt/engine/in/schema-")
    assert [str(mark.event_time) for mark in source.explicit_watermarks] == ["2024-01-01T00:00:00Z"]


def test_recorded_raw_query_has_its_steps():
    message = decode_request(RawQueryRequest, (RECORDED / "raw-query-request.bin").read_bytes())
    assert message.input_data_paths == ("/opt/engine/in/input.parquet",)
    assert message.transform.queries[-1] == SqlQueryStep(query="SELECT * FROM shouted WHERE people > 10000")


@pytest.mark.parametrize("table", [WireTransformRequest, RawQueryRequest, TransformResponseRoot, RawQueryResponseRoot])
@given(data=st.data())
def test_message_is_read_as_it_was_written(table, data):
    message = data.draw(tables(table))
    assert Decoder(unwrap(wrap(encode_root(message)))).decode_root(table) == message


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_rejected(raw):
    for read in (unwrap, lambda data: decode_request(WireTransformRequest, data)):
        try:
            read(raw)
        except (MalformedError, UnsupportedError):
            continue


def test_request_above_the_bound_is_not_looked_at():
    with pytest.raises(MalformedError, match=f"expected at most {MAX_REQUEST_SIZE_BYTES}"):
        decode_request(WireTransformRequest, bytes(MAX_REQUEST_SIZE_BYTES + 1))


@pytest.mark.parametrize("message", [b"", b"\x0a", b"\x0a\x02a", b"\x0a\x01ab", b"\x12\x01a", b"\x0a\x80\x00"])
def test_carrier_holds_exactly_one_field(message):
    with pytest.raises(MalformedError):
        unwrap(message)
