"""Arrow's schemas as texts, which messages between the two sides of the sandbox carry.

Source: clause ENGINE-4 in ``spec/extensions/engine-contract.md``.
"""

import base64
import binascii

import pyarrow as pa


def schema_text(schema: pa.Schema) -> str:
    """Return an Arrow schema as text for an answer."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode("ascii")


def schema_from_text(text: str) -> pa.Schema:
    """Read what ``schema_text`` wrote.

    Raises:
        ValueError: It is no such text.
    """
    try:
        schema: pa.Schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text, validate=True)))
        return schema.remove_metadata()
    except (binascii.Error, pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
