"""Files that engines left, checked in the sandbox of the reader; ``host.output_reader`` asks for it.

Source: clause ENGINE-19 in ``spec/extensions/engine-contract.md``.
"""

import base64
from typing import Any

import pyarrow as pa

from odf_engines.errors import EngineError
from odf_engines.host.messages import error_to_fields
from odf_engines.host.output_checks import RowsCheck, SizeCheck
from odf_engines.host.output_rows import check_file
from odf_protocol.events import OffsetInterval
from odf_protocol.vocabulary import Vocabulary


def check_output(file: pa.Buffer, fields: dict[str, Any]) -> dict[str, Any]:
    """Read everything in a file, and return what was found, or what is wrong with it, as plain values.

    Args:
        file: The file.
        fields: Of a ``RowsCheck`` or ``SizeCheck``, and its ``kind``.
    """
    try:
        found = check_file(file, _check_of(fields))
    except EngineError as error:
        return {"problem": error_to_fields(error)}
    return {"hash": None if found.logical_hash is None else str(found.logical_hash), "operations": found.operations}


def _check_of(fields: dict[str, Any]) -> RowsCheck | SizeCheck:
    text = fields["schema"]
    schema = None if text is None else pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))
    if fields["kind"] == "size":
        return SizeCheck(max_decoded_bytes=fields["max_decoded_bytes"], schema=schema, rows=fields["rows"])
    start, end = fields["interval"]
    return RowsCheck(
        schema=schema,
        vocabulary=Vocabulary(*fields["vocabulary"]),
        interval=OffsetInterval(start=start, end=end),
        system_time_ms=fields["system_time_ms"],
        max_rows=fields["max_rows"],
        max_decoded_bytes=fields["max_decoded_bytes"],
    )
