"""New values for rows that stand: from a file that somebody edited.

Source: clause ING-27 in ``spec/ingest.md``.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UsageError
from odf_node.ingest.mending import InvalidEditError, iter_texts
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeInt64,
    DataTypeOption,
    MergeStrategyAppend,
    ReadStepNdJson,
)
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS: Final = 1_000
"""Rows of one correction.  # guess: more than anybody looks through; a condition that means others is found out"""

_SHOWN: Final = 3  # guess: of lines that cannot be read, as many as a message holds


def read_values(engines: EngineHost, view: DatasetView, path: Path, scratch: Path, now: Timestamp) -> "pa.Table":
    """Read corrected rows: each says by its offset which row it stands for.

    Args:
        engines: One of them reads texts as those of an ingest (ING-4).
        view: Of the dataset; it has rows.
        path: NDJSON where its name ends so, else CSV with a header.
        scratch: Folder for what the engine reads.
        now: Any time.

    Returns:
        The offset, and the columns of the file that are the dataset's own, under their names.

    Raises:
        InvalidEditError: A line cannot be read, names other columns than the first, or a row that another one names.
        UsageError: There are no lines, too many, or a column that the dataset lacks.
    """
    known, names = view.vocabulary, list[str]()
    told = {known.op, known.system_time}
    lines: list[int] = []
    target = scratch / "corrected.ndjson"
    with target.open("w", encoding="utf-8") as file:
        for line, values in iter_texts(path):
            names = names or list(values)
            if set(values) != set(names):
                raise InvalidEditError(path, line, f"expected the columns {', '.join(names)} as in the first row")
            if len(lines) == MOST_ROWS:
                raise UsageError(f"{path} has more than {MOST_ROWS:,} rows; correct them in parts, or ingest them")
            lines.append(line)
            file.write(json.dumps({name: text for name, text in values.items() if name not in told}) + "\n")
    if known.offset not in names:
        raise UsageError(f"{path}: expected rows with a column {known.offset}, which says what row each one corrects")
    fields = _find_fields(view, [name for name in names if name not in told], path)
    request = IngestRequest(
        dataset_id=str(view.dataset_id),
        read=ReadStepNdJson(schema=DataSchema(fields=fields)),
        preprocess=None,
        merge=MergeStrategyAppend(),
        vocabulary=known,
        source_path=target,
        source_name=str(path),
        known_schema=None,
        state_path=None,
        system_time=now,
        fallback_event_time=now,
        next_offset=0,
        limits=engines.limits,
    )
    read = engines.convert(request)
    if read.quarantine is not None:
        bad = pq.read_table(read.quarantine, columns=["record", "errors"]).to_pylist()[:_SHOWN]
        reasons = "; ".join(f"{each['column'] or 'row'}: {each['message']}" for row in bad for each in row["errors"])
        raise InvalidEditError(path, lines[(bad[0]["record"] or 1) - 1], reasons)
    rows = pq.read_table(read.rows)
    seen: set[int] = set()
    for line, offset in zip(lines, rows.column(known.offset).to_pylist(), strict=True):
        if offset in seen:
            raise InvalidEditError(path, line, f"the row {offset} is there twice")
        seen.add(offset)
    return rows


def _find_fields(view: DatasetView, names: Sequence[str], path: Path) -> tuple[DataField, ...]:
    assert view.schema is not None
    types = {field.name: field for field in view.schema.fields}
    if unknown := [name for name in names if name not in types]:
        raise UsageError(f"{path}: the dataset has no column '{unknown[0]}'; it has {', '.join(types)}")
    return tuple(
        DataField(name=name, type=DataTypeInt64()) if name == view.vocabulary.offset else _optional(types[name])
        for name in names
    )


def _optional(field: DataField) -> DataField:
    return field if isinstance(field.type, DataTypeOption) else replace(field, type=DataTypeOption(inner=field.type))
