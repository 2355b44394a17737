"""Who takes in rows that others send (FEED-4)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from odf_engines.ingest_parts import QuarantineReason
from odf_node.records.datasets import DatasetRecord
from odf_node.row_counts import RowCounts
from odf_protocol.errors import OdfError, UnsupportedError
from odf_protocol.timestamp import Timestamp


class RowFormatError(UnsupportedError):
    """The push source reads another format; ``accepted`` are the media types that it does read."""

    def __init__(self, found: str, accepted: tuple[str, ...]) -> None:
        super().__init__("format of rows", found=found, supported=" or ".join(accepted))
        self.accepted = accepted


class NoRowsTakenError(OdfError):
    """Nothing was taken; the text says why, and with how many bad rows for which reasons."""

    def __init__(self, reason: str, bad_rows: int = 0, reasons: tuple[QuarantineReason, ...] = ()) -> None:
        super().__init__(reason)
        self.bad_rows = bad_rows
        self.reasons = reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRows:
    """What was sent: a file, the push source that it is for (None: the only one), who sent it, and under which key."""

    path: Path
    source_name: str | None
    event_time: Timestamp | None
    token_id: str
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRows:
    """What was made of it; see ``IngestReport``. ``head`` is the newest block behind it."""

    head: str
    new_blocks: int
    new_rows: int
    counts: RowCounts
    reasons: tuple[QuarantineReason, ...]
    warnings: tuple[QuarantineReason, ...]
    up_to_date: bool
    repeated: bool


class RowIntake(Protocol):
    """Takes in rows as ``odf-node ingest`` does; both methods block."""

    def check(self, record: DatasetRecord, source_name: str | None, media_type: str) -> None:
        """Reject what can never be taken, before any of it has come.

        Raises:
            NoRowsTakenError: The dataset has no such push source.
            RowFormatError: It reads another format.
        """
        ...

    def take(self, record: DatasetRecord, rows: SentRows) -> TakenRows:
        """Take rows in, one batch and one commit.

        Raises:
            NoRowsTakenError: They cannot be read, or too many of them are bad.
            KeyReusedError, KeyInUseError: See ``MetadataStore``.
        """
        ...

    def stop(self) -> None:
        """End at once what runs; what is not committed is dropped."""
        ...
