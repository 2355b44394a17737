"""Steps of one query on each engine, in one run: ours, and that of another implementation where ``ODF_PEER`` names it.

The query is a map, which all engines run as a transform; the seconds are those that whoever asks waits, the check of
what comes out included. The other implementation's engine runs in our sandbox, as one that was added.

Run: python tests/benchmarks/bench_datafusion.py [ROWS]          a first and a warm step, and a question
     python tests/benchmarks/bench_datafusion.py large [ROWS]    one large step (10,000,000 rows)
     python tests/benchmarks/bench_datafusion.py steps [STEPS]   small steps one after the other (100)
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits, QueryRequest, QueryTable, TransformRequest
from odf_engines.engine import Capability, Engine
from odf_engines.registry import get_engine
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.home_folder import HomeFolder
from odf_protocol.did import DatasetId
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, transform_request

ROWS = 100
LARGE_ROWS = 10_000_000
STEPS = 100
WARM = 20
QUERY = "SELECT op, event_time, upper(status) AS status, amount * 2 AS twice FROM orders WHERE id % 10 <> 0"
QUERY_TEXT = "SELECT status, count(*) AS n FROM orders GROUP BY status"


def main() -> None:
    """Print the seconds of each."""
    words = sys.argv[1:]
    kind = words.pop(0) if words and not words[0].isdigit() else "small"
    number = int(words[0]) if words else {"small": ROWS, "large": LARGE_ROWS, "steps": STEPS}[kind]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = number if kind != "steps" else ROWS
        request = make_request(write_rows(folder / "orders.parquet", rows), rows)
        baseline = None
        for engine in iter_engines(folder):
            engine.prepare()
            reported = measure(engine, folder, request, kind, number)
            compared = list(reported.values())[-1]
            baseline = baseline or compared
            shown = ", ".join(f"{what} {found:.3f} s" for what, found in reported.items())
            print(
                f"{engine.name:10} {rows:,} rows: {shown}; the last is {compared / baseline:.2f} of the first engine's"
            )


def measure(engine: Engine, folder: Path, request: TransformRequest, kind: str, number: int) -> dict[str, float]:
    """Return the seconds of each part, the median where it was done several times."""
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS, slices=request.inputs[0].slices)
    query_text = QueryRequest(tables=(table,), sql=QUERY_TEXT)
    with engine.open(folder, Limits(memory_bytes=4 * 1024**3)) as session:
        seconds = {"start": [taken(session.start)], "first step": [taken(lambda: session.transform(request))]}
        if kind == "small":
            seconds["warm step"] = [taken(lambda: session.transform(request)) for _ in range(WARM)]
        if kind == "small" and Capability.QUERY in engine.capabilities:
            seconds["first question"] = [taken(lambda: session.query(query_text))]
            seconds["warm question"] = [taken(lambda: session.query(query_text)) for _ in range(WARM)]
        if kind == "large":
            seconds["large step"] = [taken(lambda: session.transform(request)) for _ in range(3)]
        if kind == "steps":
            seconds[f"{number} steps"] = [sum(taken(lambda: session.transform(request)) for _ in range(number))]
    return {what: statistics.median(found) for what, found in seconds.items()}


def iter_engines(folder: Path) -> Iterator[Engine]:
    """Yield ours, and theirs in our sandbox."""
    yield get_engine("datafusion")
    if "ODF_PEER" in os.environ:
        engine_files = EngineFolder(HomeFolder(folder / "home"))
        program = Path(os.environ["ODF_PEER"], "engine-datafusion")
        yield engine_files.add(
            "theirs", program, WantedStart(), now=Timestamp.from_unix_ms(0), examine=lambda _engine: None
        ).engine
    yield get_engine("spark")


def make_request(path: Path, rows: int) -> TransformRequest:
    """A step over all rows of a file, of datasets that have identities."""
    source = replace(orders_input([path], (0, rows - 1)), dataset_id=str(DatasetId(b"\x02" * 32)))
    return replace(transform_request(QUERY, source), dataset_id=str(DatasetId(b"\x01" * 32)))


def write_rows(path: Path, rows: int) -> Path:
    """Write orders as a slice."""
    numbers, schema = np.arange(rows, dtype=np.int64), arrow_schema_of(ORDERS)
    instant = pa.timestamp("ms", "UTC")
    status = pa.DictionaryArray.from_arrays(pa.array(numbers % 3, pa.int32()), pa.array(["new", "paid", "sent"]))
    columns = [
        pa.array(numbers), pa.array(np.zeros(rows, np.int32)), pa.array(np.zeros(rows, np.int64)).cast(instant),
        pa.array(numbers).cast(instant), pa.array(numbers), status.cast(pa.string()), pa.array(numbers * 1.5),
    ]  # fmt: skip
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
    return path


def taken(work: object) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
