"""When a batch of rows is refused as a whole, and in which words.

A file of which most rows cannot be read is more likely another file than it should be, or written in another way, than
a file with mistakes: what can be read of it is then wrong as well, and would be signed. So nothing of it is taken, and
its source is asked again.

Source: clause ING-15 in ``spec/ingest.md``.
"""

from typing import Final

from odf_engines.contract import IngestResponse, QuarantineReason
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError

__all__ = ["LARGEST_BAD_SHARE", "BatchRefusedError", "describe_reasons", "is_beyond_limit"]

LARGEST_BAD_SHARE: Final = 0.5
"""Share of its rows that a batch may lose where its manifest says nothing else.  # guess: most is too much"""

_OF_TIMES: Final = ("day", "RFC 3339")
"""Words in the reasons of ING-4 that are about dates and times."""


class BatchRefusedError(MalformedError):
    """Too many rows of a batch cannot be taken, so none was.

    Attributes:
        dataset: Name of the dataset.
        source: What people call the file.
        rows: Rows of the batch.
        bad_rows: Those in quarantine.
        reasons: The commonest.
    """

    def __init__(
        self,
        dataset: str,
        source: str,
        *,
        rows: int,
        bad_rows: int,
        limit: float,
        reasons: tuple[QuarantineReason, ...],
    ) -> None:
        super().__init__("batch", where=source)
        self.dataset = dataset
        self.source = source
        self.rows = rows
        self.bad_rows = bad_rows
        self.reasons = reasons
        which = "none" if bad_rows >= rows else f"only {rows - bad_rows:,}"
        mend = "; if dates are written in another way, say so with dateFormat or timestampFormat in the read step"
        about_times = any(word in each.reason for each in reasons for word in _OF_TIMES)
        message = (
            f"{dataset}: {which} of {count_of(rows, 'row')} of {source} could be read, so nothing of it was taken"
            f" (at most {limit:.0%} may fail). {describe_reasons(reasons)}{mend if about_times else ''};"
            f" 'odf-node inspect quarantine {dataset}' shows every row"
        )
        self.args = (message,)


def is_beyond_limit(response: IngestResponse, limit: float) -> bool:
    """Say whether more of the rows that were read are in quarantine than the limit allows, or all of them."""
    rows, bad = response.statistics.rows_in, response.quarantined_rows
    return bad > 0 and (bad >= rows or bad > limit * rows)


def describe_reasons(reasons: tuple[QuarantineReason, ...]) -> str:
    """Say in a line what is wrong, the commonest first."""
    return "; ".join(map(_describe, reasons))


def _describe(reason: QuarantineReason) -> str:
    column = f"{reason.column}: " if reason.column else ""
    value = f" {reason.value!r}" if reason.value is not None else ""
    place = f" in line {reason.line}" if reason.line is not None else ""
    sample = f" (first{value}{place})" if value or place else ""
    return f"{count_of(reason.rows, 'row')}: {column}{reason.reason}{sample}"
