"""An engine of somebody else: its only query is LOUD, which writes the texts of its input in capitals."""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import Grade, GradeLevel, InvalidQueryError, Statistics, TransformResponse
from odf_engines.engine import Offer
from odf_protocol.events import OffsetInterval
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.schema_arrow import arrow_schema_of


class LoudEngine:
    name = "loud"
    version = "1.0"
    offers = frozenset({Offer.TRANSFORM})
    is_stepwise = True
    settings: ClassVar[dict[str, str]] = {}

    def digest(self):
        return Multihash(SHA3_256, hashlib.sha3_256(Path(__file__).read_bytes()).digest())

    def open(self, workspace, limits):
        return LoudSession(workspace)

    def prepare(self):
        pass

    def examine(self):
        return ()


class LoudSession:
    def __init__(self, workspace):
        self.folder = Path(tempfile.mkdtemp(dir=workspace))

    def start(self):
        pass

    def check(self, transform, inputs, *, vocabulary=None):
        _query_of(transform)
        return Grade(level=GradeLevel.REPRODUCIBLE, schema=arrow_schema_of(inputs[0].schema))

    def transform(self, request):
        _query_of(request.transform)
        (source,) = request.inputs
        schema = arrow_schema_of(source.schema)
        table = pa.concat_tables([schema.empty_table(), *(pq.read_table(path).cast(schema) for path in source.slices)])
        rows = table.num_rows
        columns = {name: table.column(name) for name in table.column_names}
        columns["offset"] = pa.array(range(request.next_offset, request.next_offset + rows), pa.int64())
        columns["system_time"] = pa.array([request.system_time.unix_ms] * rows).cast(schema.field("system_time").type)
        for name, column in columns.items():
            if pa.types.is_string(column.type):
                columns[name] = pc.utf8_upper(column)
        path = self.folder / f"{request.next_offset}.parquet"
        pq.write_table(pa.table(columns, schema=schema), path)
        marks = [mark.event_time for mark in source.watermarks]
        return TransformResponse(
            schema=schema,
            data_path=path if rows else None,
            offset_interval=OffsetInterval(start=request.next_offset, end=request.next_offset + rows - 1)
            if rows
            else None,
            watermark=max(marks, default=request.prev_watermark),
            checkpoint_path=None,
            statistics=Statistics(rows_in=rows, rows_out=rows),
        )

    def stop(self):
        pass

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


def _query_of(transform):
    if [step.query for step in transform.queries or ()] != ["LOUD"] and transform.query != "LOUD":
        raise InvalidQueryError("the only query is LOUD")
