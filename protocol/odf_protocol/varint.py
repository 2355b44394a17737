"""Unsigned LEB128 integers, the length and code prefixes of multiformats.

Source: multiformats unsigned-varint specification: at most 9 bytes, shortest form only.
"""

from odf_protocol.errors import MalformedError

MAX_VARINT_BYTES = 9  # multiformats unsigned-varint: "practical maximum of 9 bytes"


def encode_varint(value: int) -> bytes:
    """Encode a number below 2**63 in the shortest form."""
    if not 0 <= value < 1 << 63:
        raise ValueError(f"varint out of range: {value}")
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, position: int = 0) -> tuple[int, int]:
    """Decode one number.

    Returns:
        The number and the position of the byte after it.

    Raises:
        MalformedError: Cut short, longer than 9 bytes, or not in the shortest form.
    """
    value = 0
    for count, byte in enumerate(data[position : position + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if byte == 0 and count:
                raise MalformedError("varint", where=position, expected="the shortest form", found="a trailing zero")
            return value, position + count + 1
    expected = f"an end within {MAX_VARINT_BYTES} bytes"
    raise MalformedError("varint", where=position, expected=expected, found=f"{len(data) - position} bytes")
