"""Errors of writes: a frame that does not fit its table, or rows of it that do not.

Source: clauses TABLE-4 to TABLE-6 in ``spec/plug-ins/tables.md``.
"""

from collections.abc import Sequence
from typing import Any, Final

from odf_node.wording import count_of
from odf_protocol.errors import MalformedError

SHOWN_ROWS: Final = 5  # guess: as many offending rows as a message has room for
_SHOWN_CHARACTERS: Final = 60  # guess: of a value


class SchemaMismatchError(MalformedError):
    """The columns of a frame are not those of its table; nothing was written.

    Attributes:
        differences: A line for each column: ``+`` only the frame has it, ``-`` only the table, ``~`` of other types.
    """

    def __init__(self, table: str, differences: Sequence[str]) -> None:
        super().__init__("frame", where=table)
        self.differences = tuple(differences)
        shown = "; ".join(differences)
        remedy = "merge_schema=True adds columns that only the frame has"
        self.args = (f"the frame has other columns than '{table}': {shown}. Nothing was written; {remedy}",)


class RowsRejectedError(MalformedError):
    """Rows of a frame cannot be written, so none was.

    Attributes:
        reason: What is wrong with them.
        rows: The first of them, as dictionaries; ``row`` is the number in the frame, from 0, where it is known.
        count: How many there are; None where only the first were looked for.
    """

    def __init__(self, table: str, reason: str, rows: Sequence[dict[str, Any]], count: int | None = None) -> None:
        super().__init__("rows", where=table)
        self.reason = reason
        self.rows = tuple(rows[:SHOWN_ROWS])
        self.count = count
        many = "" if count is None else f" ({count_of(count, 'row')})"
        shown = "; ".join(_describe(each) for each in self.rows)
        self.args = (f"'{table}': {reason}{many}: {shown}. Nothing was written",)


def _describe(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_shorten(value)}" for name, value in row.items())


def _shorten(value: object) -> str:
    text = str(value) if isinstance(value, int) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
