"""Rows of another dataset that a plug-in looks into: its files; ``current_rows`` reads them.

Source: clauses CONV-8 in ``spec/conversion.md`` and VALID-9 in ``spec/validation.md``; QUERY-3 in ``spec/query.md``.
"""

from dataclasses import dataclass
from pathlib import Path

from odf_protocol.events import DataSchema
from odf_protocol.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedRows:
    """A dataset as it was known at one time.

    Attributes:
        vocabulary: Names of its system columns.
        schema: Of its rows.
        slices: Files with them that this node wrote, oldest first; none where a declaration is only checked.
    """

    vocabulary: Vocabulary
    schema: DataSchema
    slices: tuple[Path, ...] = ()
