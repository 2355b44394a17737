"""An engine whose only query is LOUD, the rows of its input in capitals. The one file of an external package."""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import (
    Grade,
    GradeLevel,
    InvalidQueryError,
    Limits,
    QueryTable,
    Statistics,
    TransformRequest,
    TransformResponse,
)
from odf_engines.engine import Capability, MachineNeed
from odf_protocol.events import OffsetInterval, TransformSql
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.vocabulary import Vocabulary


class LoudSession:
    """A session without a process: LOUD is no query that could do harm, so it needs no sandbox."""

    def __init__(self, workspace: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=workspace))

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        """Grade a query: LOUD follows from its rows alone."""
        _require_loud(transform)
        return Grade(level=GradeLevel.REPRODUCIBLE, schema=arrow_schema_of(inputs[0].schema))

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Write what is new in the input, with texts in capitals, offsets and system times of the step."""
        _require_loud(request.transform)
        (source,) = request.inputs
        schema = arrow_schema_of(source.schema)
        rows = pa.concat_tables([schema.empty_table(), *(pq.read_table(path).cast(schema) for path in source.slices)])
        count, first = rows.num_rows, request.next_offset
        columns = {name: rows.column(name) for name in rows.column_names}
        columns["offset"] = pa.array(range(first, first + count), pa.int64())
        columns["system_time"] = pa.array([request.system_time.unix_ms] * count).cast(schema.field("system_time").type)
        texts = {name: pc.utf8_upper(column) for name, column in columns.items() if pa.types.is_string(column.type)}
        path = self._folder / f"{first}.parquet"
        pq.write_table(pa.table(columns | texts, schema=schema), path)
        return TransformResponse(
            schema=schema,
            data_path=path if count else None,
            offset_interval=OffsetInterval(start=first, end=first + count - 1) if count else None,
            watermark=max((mark.event_time for mark in source.watermarks), default=request.prev_watermark),
            checkpoint_path=None,
            statistics=Statistics(rows_in=count, rows_out=count),
        )

    def start(self) -> None:
        """Nothing: there is no process."""

    def stop(self) -> None:
        """Nothing, as above."""

    def close(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class LoudEngine:
    """The engine: it runs transforms, and what it does not offer is not asked of it."""

    name: Final = "loud"
    version: Final = "1.0"
    capabilities: Final = frozenset({Capability.TRANSFORM})
    is_stepwise: Final = True
    settings: Final[Mapping[str, str]] = MappingProxyType({})

    def digest(self) -> Multihash:
        """Hash what decides a result: this file."""
        return Multihash(SHA3_256, hashlib.sha3_256(Path(__file__).read_bytes()).digest())

    def open(self, workspace: Path, limits: Limits) -> LoudSession:
        """Make a session."""
        return LoudSession(workspace)

    def prepare(self) -> None:
        """Nothing makes it faster."""

    def examine(self) -> Sequence[MachineNeed]:
        """Nothing is needed of a machine."""
        return ()


def _require_loud(transform: TransformSql) -> None:
    if transform.query != "LOUD" and [step.query for step in transform.queries or ()] != ["LOUD"]:
        raise InvalidQueryError("the only query is LOUD")
