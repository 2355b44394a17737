"""Validators between conversion and merge: the good rows go on, the bad ones to quarantine with all their errors.

Source: clauses VALID-2 and VALID-4 in ``spec/validation.md``.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest, QuarantineReason
from odf_engines.errors import InvalidSourceError, LimitExceededError
from odf_engines.ingest.quarantined_rows import BadRows, QuarantinedRow, iter_batches
from odf_engines.ingest.reasons import list_reasons
from odf_engines.ingest.result import Folders
from odf_engines.records.carriers import carrier_of, from_carrier
from odf_engines.records.source_records import ROW_GROUP_ROWS, FieldError, value_name
from odf_engines.stage_metrics import IngestStage
from odf_engines.validation.contract import ParameterError
from odf_engines.validation.plug_ins import BrokenPlugInError
from odf_engines.validation.running_name import VALIDATOR, RunningName
from odf_engines.validation.validated_rows import FailedValidatorError, RowFile, ValidatedRows, validate
from odf_protocol.cell_values import cell_value

STAGE = "validate"


@dataclass(frozen=True, slots=True)
class Validated:
    """Rows of a request that went past its validators.

    Attributes:
        file: All of them.
        path: File of the good ones.
        rows: What was said.
        warnings: The commonest things that were said of good rows.
    """

    file: RowFile
    path: Path
    rows: ValidatedRows
    warnings: tuple[QuarantineReason, ...]

    def iter_bad(self, *, are_records: bool = True) -> BadRows:
        """Give the bad rows by number; those that are results of a query have none, and stand as JSON."""
        return iter_batches(self._iter_bad_rows(are_records=are_records))

    def _iter_bad_rows(self, *, are_records: bool) -> Iterator[QuarantinedRow]:
        texts = None if are_records else self._iter_bad_texts()
        for number, errors in self.rows.iter_bad():
            if texts is None:
                yield QuarantinedRow(number, STAGE, errors)
            else:
                yield QuarantinedRow(None, STAGE, errors, next(texts))

    def _iter_bad_texts(self) -> Iterator[str]:
        bad = pa.array([number for number, _ in self.rows.iter_bad()], pa.int64())
        fields = [(value_name(index), field) for index, field in enumerate(self.file.schema)]
        with closing(pq.ParquetFile(self.file.path)) as file:
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                rows = batch.filter(pc.is_in(batch.column(self.file.number), bad))
                arrays = [
                    (field.name, from_carrier(from_carrier(rows.column(name), carrier_of(field.type)), field.type))
                    for name, field in fields
                ]
                for index in range(rows.num_rows):
                    row = {name: cell_value(array[index]) for name, array in arrays}
                    yield json.dumps(row, ensure_ascii=False)


def validate_rows(request: IngestRequest, folders: Folders, path: Path, number: str, schema: pa.Schema) -> Validated:
    """Let the validators of a request look at a file of converted rows.

    Args:
        request: It has validators.
        folders: Where.
        path: Of the rows; see ``RowFile`` for it, ``number`` and ``schema``.
        number: Name of the column with the number of each row.
        schema: Fields of the values.

    Raises:
        InvalidSourceError: A validator cannot be applied to these columns, or failed on the batch as a whole.
        LimitExceededError: One used up the memory.
    """
    running = RunningName(folders.output)
    file = RowFile(path, number, schema)
    try:
        with folders.clock.measuring(IngestStage.VALIDATE) as stage:
            rows = validate(
                file,
                request.validators,
                folders.scratch,
                now_ms=request.system_time.unix_ms,
                watch=lambda name: running.tell(name and f"{VALIDATOR} {name}"),
                clock=folders.clock,
            )
        stage.count(rows_in=rows.row_count, rows_out=rows.row_count - rows.bad_count, bad_rows=rows.bad_count)
    except (ParameterError, FailedValidatorError, BrokenPlugInError) as error:
        name = "" if isinstance(error, FailedValidatorError | BrokenPlugInError) else f"{running.name}: "
        raise InvalidSourceError(request.source_name, f"{name}{error}") from error
    except MemoryError as error:
        raise LimitExceededError("memory_bytes", allowed=request.limits.memory_bytes, where=running.name) from error
    warned = (QuarantinedRow(each, STAGE, _as_errors(errors)) for each, errors in rows.iter_warned())
    return Validated(file, rows.path, rows, list_reasons(warned))


def _as_errors(warnings: tuple[FieldError, ...]) -> tuple[FieldError, ...]:
    return tuple(replace(each, is_warning=False) for each in warnings)
