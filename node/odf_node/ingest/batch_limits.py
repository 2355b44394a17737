"""When a batch of rows is refused as a whole, and in which words.

A file of which most rows cannot be read is more likely another file than it should be, or written in another way, than
a file with mistakes: what can be read of it is then wrong as well, and would be signed. So nothing of it is taken, and
its source is asked again.

Source: clause ING-15 in ``spec/ingest.md``.
"""

import re
from dataclasses import dataclass
from typing import Final

from odf_engines.contract import IngestResponse, QuarantineReason
from odf_node.ingest.report import describe_reasons
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.nodes import MapNode, Scalar
from odf_protocol.manifest.snapshot_error import At
from odf_protocol.manifest.yaml_text import parse_yaml

__all__ = ["LIMITS_PATH", "BatchLimits", "BatchRefusedError", "check_limits", "find_limits"]

LIMITS_PATH: Final = "odf-node/ingest.yaml"
"""The attachment in which a manifest states its limits: other ODF nodes keep and show it, whatever it says."""

_SHARE: Final = "largestBadShare"

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


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is refused as a whole.

    Attributes:
        largest_bad_share: Share of its rows that may be in quarantine, from 0 to 1.
        is_declared: The manifest says so.
    """

    largest_bad_share: float = LARGEST_BAD_SHARE
    is_declared: bool = False

    def refuse(self, response: IngestResponse) -> bool:
        """Say whether too many of the rows that were read are in quarantine: more than the share.

        All of them are too many too, unless the manifest says that they are not.
        """
        rows, bad = response.statistics.rows_in, response.quarantined_rows
        return bad > self.largest_bad_share * rows or (bad >= rows > 0 and not self.is_declared)


def find_limits(attachments: SetAttachments | None) -> BatchLimits:
    """Read the limits that a dataset declares, or else the usual ones.

    Raises:
        ManifestError: They cannot be read.
    """
    for item in attachments.attachments.items if attachments else ():
        if item.path == LIMITS_PATH:
            return _parse(item.content)
    return BatchLimits()


def check_limits(event: SetAttachments, at: At) -> None:
    """Refuse limits that cannot be read.

    Raises:
        SnapshotError: They cannot; ``at`` is the event's place.
    """
    for index, item in enumerate(event.attachments.items):
        if item.path == LIMITS_PATH:
            try:
                _parse(item.content)
            except ManifestError as error:
                (at / "attachments" / "items" / index / "content").reject(error.expected, error.found)


def _parse(text: str) -> BatchLimits:
    example = f"one line '{_SHARE}: 0.1', a share from 0 to 1"
    match parse_yaml(text, source_name=LIMITS_PATH):
        case [MapNode(entries=((Scalar(text=name), Scalar(text=value)),))] if name == _SHARE:
            if re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", value, re.ASCII) and float(value) <= 1:
                return BatchLimits(float(value), is_declared=True)
            raise ManifestError(LIMITS_PATH, 1, 1, path=_SHARE, expected=example, found=value)
    raise ManifestError(LIMITS_PATH, 1, 1, expected=example, found=text[:60])
