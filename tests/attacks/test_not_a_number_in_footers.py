"""Files of rows whose footers leave NaN out, as all writers do: no engine makes another number of them, or loses them.

DataFusion takes a column of which a footer says that its least and greatest values are one for a constant, answers
extremes from footers, and leaves out files in which a value cannot be. Of 1.0 and NaN it read 1.0 twice.

Source: FUSION-15 in ``spec/extensions/engine-contract.md``.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import odf_node
from odf_engines.contract import TransformInput
from odf_engines.datafusion.context import make_context
from odf_engines.datafusion.relations import input_rows, read_whole_floats, register
from odf_protocol.events import DataField, DataSchema, DataTypeFloat64, DataTypeInt64, OffsetInterval
from odf_protocol.vocabulary import Vocabulary
from support.nodes import RealNode

MEMORY_BYTES = 256 * 1024 * 1024
NAN = math.nan
ROWS: dict[str, list[list[float | None]]] = {
    "one-number": [[1.0, NAN]],
    "nothing-else": [[NAN, NAN]],
    "with-nulls": [[None, NAN, 2.0]],
    "two-files": [[1.0, NAN], [1.0, 1.0]],
    "two-groups": [[NAN, NAN, 2.0, 3.0]],
    "both-zeros": [[0.0, -0.0, NAN]],
    "infinite": [[math.inf, NAN], [-math.inf]],
}
QUERIES = (
    "SELECT offset, x FROM p ORDER BY offset",
    "SELECT max(x) AS a, min(x) AS b, count(*) AS c, count(x) AS d, count(DISTINCT x) AS e FROM p",
    "SELECT offset FROM p WHERE x > 1 ORDER BY offset",
    "SELECT offset FROM p WHERE x <> 1 ORDER BY offset",
    "SELECT offset FROM p WHERE NOT (x <= 1) ORDER BY offset",
    "SELECT offset FROM p WHERE x = CAST('NaN' AS DOUBLE) ORDER BY offset",
    "SELECT offset FROM p WHERE x IN (1.0, CAST('NaN' AS DOUBLE)) ORDER BY offset",
    "SELECT offset FROM p WHERE isnan(x) ORDER BY offset",
    "SELECT offset, x FROM p ORDER BY x DESC NULLS LAST, offset LIMIT 2",
    "SELECT a.offset FROM p a JOIN p b ON a.x = b.x ORDER BY a.offset",
)


def tables_of(name: str) -> list[pa.Table]:
    found, first = [], 0
    for values in ROWS[name]:
        offsets = list(range(first, first + len(values)))
        found.append(pa.table({"offset": pa.array(offsets, pa.int64()), "x": pa.array(values, pa.float64())}))
        first += len(values)
    return found


def write(folder: Path, tables: Sequence[pa.Table]) -> tuple[Path, ...]:
    paths = []
    for number, table in enumerate(tables):
        paths.append(folder / f"slice-{number}.parquet")
        pq.write_table(table, paths[-1], row_group_size=2)
    return tuple(paths)


def expected(tables: Sequence[pa.Table], query: str) -> str:
    context = datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.target_partitions": "1"}))
    context.register_record_batches("p", [[batch for table in tables for batch in table.to_batches()]])
    return str(context.sql(query).to_pylist())


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("is_step", [True, False], ids=["step", "query"])
def test_rows_are_those_of_the_file_whatever_its_footer_leaves_out_fusion_15(
    tmp_path: Path, name: str, is_step: bool
) -> None:
    tables = tables_of(name)
    paths = write(tmp_path, tables)
    spill = tmp_path / "spill"
    spill.mkdir()
    context = make_context(MEMORY_BYTES, is_repeatable=is_step, spill=None if is_step else spill)
    if is_step:
        kinds = {"offset": DataTypeInt64(), "x": DataTypeFloat64()}
        given = TransformInput(
            dataset_id="did:odf:x",
            alias="p",
            vocabulary=Vocabulary(),
            schema=DataSchema(fields=tuple(DataField(name=key, type=kind) for key, kind in kinds.items())),
            slices=paths,
            offset_interval=OffsetInterval(start=0, end=sum(table.num_rows for table in tables) - 1),
        )
        register(context, "p", input_rows(context, given, tmp_path / "input"))
    else:
        register(context, "p", read_whole_floats(context, paths, tmp_path / "input"))

    for query in QUERIES:
        if not (is_step and "isnan" in query and "isnan" not in context.udfs()):
            assert str(context.sql(query).to_pylist()) == expected(tables, query), query


def test_half_floats_and_text_beside_them_are_as_the_file_has_them_fusion_15(tmp_path: Path) -> None:
    rows = pa.table({"h": pa.array([1.0, NAN], pa.float16()), "f": pa.array([1.0, NAN], pa.float32()), "t": ["a", "b"]})
    pq.write_table(rows, tmp_path / "slice")
    context = make_context(MEMORY_BYTES, is_repeatable=False, spill=tmp_path)
    found = read_whole_floats(context, [tmp_path / "slice"], tmp_path / "input")

    assert str(found.to_pylist()) == str(rows.to_pylist())
    assert [each.type for each in found.schema()][:2] == [pa.float16(), pa.float32()]


@pytest.mark.parametrize(("before", "after"), [([1.0, NAN], 3.0), ([NAN, 1.0], 1.0), ([NAN], 3.0), ([3.0, 3.0], NAN)])
def test_merge_takes_back_what_stood_there_fusion_15(tmp_path: Path, before: list[float], after: float) -> None:
    """It ended with "this is a fault of odf-node": the row that it took back had the number of another row."""
    with odf_node.open(tmp_path / "home") as opened:
        table = opened.create_table("p", "id BIGINT, x DOUBLE", key=["id"])
        table.insert(pa.table({"id": list(range(len(before))), "x": before}))
        written = table.upsert([{"id": 0, "x": after}])
        found = opened.sql("SELECT id, x FROM p__state ORDER BY id").arrow
    wanted = [after, *before[1:]]
    assert str(found.column("x").to_pylist()) == str(wanted)
    assert written is not None


DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: d
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: p, alias: p}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT op, event_time, id, x FROM p"}
"""


def test_derivative_has_the_rows_of_its_input_fusion_15(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    with odf_node.open(node.home) as opened:
        opened.create_table("p", "id BIGINT, x DOUBLE").insert(pa.table({"id": [1, 2], "x": [1.0, NAN]}))
    (tmp_path / "d.yaml").write_text(DERIVATIVE)
    node.must("add", str(tmp_path / "d.yaml"))
    node.must("pull", "d")
    with odf_node.open(node.home) as opened:
        rows = opened.sql("SELECT x FROM d ORDER BY id").arrow
    assert str(rows.column("x").to_pylist()) == str([1.0, NAN])
