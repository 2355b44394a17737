"""The one protobuf message of the contract: ``message M { bytes flatbuffer = 1; }``.

A generated codec for one field would be larger than this and would need a compiler to make.

Source: ODF engine.proto; protobuf "Encoding"; clause GRPC-2 of ``spec/plug-ins/engine-grpc.md``.
"""

from odf_protocol.errors import MalformedError
from odf_protocol.multihash import decode_varint, encode_varint

_TAG = b"\x0a"  # field 1, length-delimited


def wrap(flatbuffer: bytes) -> bytes:
    """Return the message that carries these bytes."""
    return _TAG + encode_varint(len(flatbuffer)) + flatbuffer


def unwrap(message: bytes) -> bytes:
    """Return the bytes that a message carries.

    Raises:
        MalformedError: It is not exactly that one field.
    """
    if message[:1] != _TAG:
        raise MalformedError(
            "engine message", where=0, expected="field 1 of bytes", found=message[:1].hex() or "nothing"
        )
    length, start = decode_varint(message, 1)
    if len(message) - start != length:
        raise MalformedError("engine message", where=start, expected=f"{length} bytes", found=len(message) - start)
    return message[start:]
