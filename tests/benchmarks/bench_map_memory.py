"""Whether a map over many rows stays inside a memory ceiling, and what it costs: 50 million rows in 2 GiB.

Reports the highest resident memory of all processes of the sandbox together, as its own watch counts it, the processor
time, and whether the result is complete. Ends with code 1 if the ceiling does not hold.

Run: python tests/benchmarks/bench_map_memory.py [MILLIONS_OF_ROWS] [MEMORY_MIB]
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_engines.contract import Limits, TransformResponse
from odf_engines.errors import LimitExceededError
from odf_engines.sandbox.resources import usage_of
from odf_protocol.schema_arrow import arrow_schema_of
from odf_spark.engine import SparkEngine
from support.transforms import ORDERS, orders_input, transform_request

MIB = 1024 * 1024
SLICE_ROWS = 5_000_000
GROUP_ROWS = 250_000
KEPT_PERCENT = 90
QUERY = "SELECT event_time, id, upper(status) AS status, amount * 2 AS twice FROM orders WHERE amount >= 10"


def write_slice(path: Path, first: int, rows: int) -> Path:
    """Write rows whose columns do not compress to nothing."""
    schema = arrow_schema_of(ORDERS)
    words = pa.array([f"status number {number}" for number in range(997)])
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for start in range(first, first + rows, GROUP_ROWS):
            numbers = np.arange(start, min(start + GROUP_ROWS, first + rows), dtype=np.int64)
            scattered = (numbers * 2_654_435_761) % 2**32
            columns = [
                numbers,
                np.zeros(len(numbers), np.int32),
                pa.array(np.zeros(len(numbers), np.int64)).cast(schema.types[2]),
                pa.array(numbers).cast(schema.types[3]),
                scattered,
                words.take(pa.array(scattered % 997)),
                (numbers % 100).astype(np.float64),
            ]
            writer.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema))
    return path


def watch_peak(is_over: "threading.Event", session: object, peak: list[float]) -> None:
    """Keep the session's highest memory, and the processor time, until told to end."""
    while not is_over.wait(0.1):
        process = getattr(session, "_process", None)
        if process is not None:
            usage = usage_of(process.process_id)
            peak[0] = max(peak[0], usage.memory_bytes)
            peak[1] = max(peak[1], usage.cpu_s)


def main() -> int:
    """Print the figures."""
    rows = int(float(sys.argv[1]) * 1_000_000) if len(sys.argv) > 1 else 50_000_000
    memory_bytes = (int(sys.argv[2]) if len(sys.argv) > 2 else 2048) * MIB
    engine = SparkEngine()
    engine.prepare()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        slices = [
            write_slice(folder / f"{first}.parquet", first, min(SLICE_ROWS, rows - first))
            for first in range(0, rows, SLICE_ROWS)
        ]
        size = sum(path.stat().st_size for path in slices)
        print(f"{rows:,} rows in {len(slices)} slices, {size / MIB:,.0f} MiB; ceiling {memory_bytes / MIB:,.0f} MiB")
        (folder / "workspace").mkdir()
        limits = Limits(memory_bytes=memory_bytes, wall_s=3600.0, output_bytes=16 * 1024 * MIB)
        peak, is_over = [0.0, 0.0], threading.Event()
        response: TransformResponse | None = None
        started = time.perf_counter()
        with engine.open(folder / "workspace", limits) as session:
            watch = threading.Thread(target=watch_peak, args=(is_over, session, peak))
            watch.start()
            try:
                request = transform_request(QUERY, orders_input(slices, (0, rows - 1)), limits=limits)
                response = session.transform(request)
            except LimitExceededError as error:
                print(f"FAILED: {error}")
            finally:
                is_over.set()
                watch.join()
            taken_s = time.perf_counter() - started
        print(f"peak of resident memory: {peak[0] / MIB:,.0f} MiB")
        print(f"wall {taken_s:.1f} s, processor time {peak[1]:.1f} s; start included")
        if response is None:
            return 1
        expected = rows * KEPT_PERCENT // 100
        print(f"rows out: {response.statistics.rows_out:,} (expected {expected:,})")
        return 0 if response.statistics.rows_out == expected else 1


if __name__ == "__main__":
    sys.exit(main())
