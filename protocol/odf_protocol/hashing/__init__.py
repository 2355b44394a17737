"""Hashes over rows: what two tables must share to count as equal, whatever the Parquet writer did.

``arrow0``
    ODF's own logical hash, needed to agree with other nodes; ambiguous in known ways.
``v1``
    Our Merkle hash beside it: injective, and finds where two tables differ.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_protocol.hashing import arrow0 as arrow0
    from odf_protocol.hashing import reader_schema as reader_schema
    from odf_protocol.hashing import v1 as v1
    from odf_protocol.hashing import v1_difference as v1_difference
else:
    __getattr__ = late_modules(__name__)
