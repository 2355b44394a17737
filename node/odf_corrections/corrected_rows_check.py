"""What the validators of a dataset say of corrected rows: a correction brings in none that an ingest would reject.

The engine that ingests is asked with the rows as its source, and what it would write is thrown away. Limits, and what a
validator says of a batch as a whole, are about what sources bring.

Source: clause ING-27 in ``spec/plug-ins/corrections.md``; VALID-2 and VALID-8 in ``spec/validation.md``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_corrections.current_rows import content_of
from odf_engines.contract import IngestRequest, QuarantineReason, ValidatorCall
from odf_engines.reading.files import read_table
from odf_node.engines.sessions import EngineHost
from odf_node.wording import count_of
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import MalformedError
from odf_protocol.events import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyUpsertStream,
    ReadStepParquet,
)
from odf_protocol.timestamp import Timestamp

_SHOWN: Final = 20  # guess: of bad rows, one screen
_APPEND, _CORRECT_TO = 0, 3  # Source: ODF OperationType


class InvalidCorrectionError(MalformedError):
    """Validators of the dataset reject corrected rows.

    Attributes:
        dataset: Name of the dataset.
        reasons: All that was said, by the offset of the row that was to be corrected.
    """

    def __init__(self, dataset: str, reasons: Mapping[int, str]) -> None:
        super().__init__("correction", where=dataset)
        self.dataset = dataset
        self.reasons = reasons
        shown = [f"row {offset}: {reason}" for offset, reason in sorted(reasons.items())[:_SHOWN]]
        more = [f"{len(reasons) - _SHOWN:,} more"] if len(reasons) > _SHOWN else []
        reported = (
            f"{dataset}: {count_of(len(reasons), 'corrected row')} would break its rules, and nothing was changed"
        )
        self.args = (
            f"{reported}: {'; '.join(shown + more)}; a rule that is wrong is fixed with 'odf-node change' first",
        )


def check_corrected(
    engines: EngineHost,
    dataset: str,
    view: DatasetView,
    validators: tuple[ValidatorCall, ...],
    after: "pa.Table",
    scratch: Path,
    now: Timestamp,
) -> tuple[QuarantineReason, ...]:
    """Let validators look at rows as they are to be.

    Args:
        engines: One of them asks the validators, as in an ingest.
        dataset: What people call it.
        view: Of its chain.
        validators: Its own, at least one.
        after: The rows, with all columns of the dataset and the offsets of those that they correct.
        scratch: Folder for what the engine reads.
        now: Time of the correction.

    Returns:
        What was said of rows that may stand all the same, the commonest.

    Raises:
        InvalidCorrectionError: A row would not have been taken in.
        InvalidSourceError, EngineError: As an ingest.
    """
    known = view.vocabulary
    content = content_of(view)
    rows, merge = after.select(content), _strategy_of(view)
    if not isinstance(merge, MergeStrategyAppend):
        # Rows of such a source say what they do, and rules may name that column.
        operation = _CORRECT_TO if isinstance(merge, MergeStrategyChangelogStream) else _APPEND
        rows = rows.append_column(known.op, pa.array([operation] * rows.num_rows, pa.int32()))
    path = scratch / "corrected.parquet"
    pq.write_table(rows, path)
    request = IngestRequest(
        dataset_id=str(view.dataset_id),
        read=ReadStepParquet(),
        preprocess=None,
        merge=merge,
        vocabulary=known,
        source_path=path,
        source_name=f"corrected rows of {dataset}",
        known_schema=None,
        state_path=None,
        system_time=now,
        fallback_event_time=now,
        next_offset=0,
        validators=validators,
        limits=engines.limits,
    )
    response = engines.ingest(request)
    if response.quarantine_path is not None:
        found = read_table(response.quarantine_path, columns=("record", "errors")).to_pylist()
        offsets = after.column(known.offset).to_pylist()
        raise InvalidCorrectionError(dataset, {offsets[row["record"] - 1]: _describe(row["errors"]) for row in found})
    return response.warnings


def _strategy_of(view: DatasetView) -> MergeStrategy:
    """Return the strategy whose rows have the columns of corrected ones; what it makes of them does not matter."""
    sources = view.polling_source, *view.push_sources.values()
    streams = MergeStrategyChangelogStream | MergeStrategyUpsertStream
    found = (each.merge for each in sources if each is not None and isinstance(each.merge, streams))
    return next(found, MergeStrategyAppend())


def _describe(errors: list[dict[str, str | None]]) -> str:
    """Say all that is wrong with a row."""
    return ", ".join(f"{_place_of(each)}{each['message']}" for each in errors if each["severity"] == "error")


def _place_of(error: Mapping[str, str | None]) -> str:
    value = f" ({error['value']})" if error["value"] is not None else ""
    return f"{error['column']}{value}: " if error["column"] else ""
