"""Files of some kilobytes that hold the same long text in each row: what chooses slices takes little memory for them.

WINDOW-11 in ``spec/extensions/event-windows.md``, ASOF-11 in ``spec/extensions/as-of-joins.md``; and so does what
follows their dataset, ING-43 in ``spec/ingest.md``.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS, LONG = 30_000, 40_000
"""1.2 GB of texts."""
MAX_BYTES = 768 * 1024**2
READERS = {
    "times beside": """
        from odf_engines.reading.event_times import find_newest, read_times_beside

        found = read_times_beside(path, "event_time", ("k", "op"))
        print(found.num_rows, find_newest(found).num_rows)
    """,
    "new rows": """
        import pyarrow.parquet as pq
        from odf_engines.reading.new_rows import write_new_rows
        from odf_protocol.schema_arrow import data_schema_of
        from odf_protocol.vocabulary import Vocabulary

        schema = data_schema_of(pq.read_schema(path))
        target = path.with_name("new.parquet")
        write_new_rows([path], schema, Vocabulary(), target, after=0, name="x", has_operations=False)
        print(pq.read_metadata(target).num_rows + 1, int(target.stat().st_size < 2_000_000))
    """,
}
LIMITED = f"""
import resource, sys
from pathlib import Path

resource.setrlimit(resource.RLIMIT_DATA, ({MAX_BYTES}, {MAX_BYTES}))
path = Path(sys.argv[1])
"""


def write_swollen(path: Path) -> None:
    """Write all rows as one group, as an engine writes so many."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array(["a" * LONG]))
    times = pa.array(range(ROWS), pa.int64()).cast(pa.timestamp("ms", "UTC"))
    numbers, none = pa.array(range(ROWS), pa.int64()), pa.array(np.zeros(ROWS, np.int32))
    columns = {"offset": numbers, "op": none, "system_time": times, "event_time": times, "k": texts}
    pq.write_table(pa.table(columns), path, store_schema=False)


@pytest.mark.parametrize("reader", READERS)
def test_text_that_is_repeated_in_each_row_takes_no_memory_for_each_row(tmp_path, reader):
    path = tmp_path / "rows.parquet"
    write_swollen(path)
    assert path.stat().st_size < 2_000_000
    # Other allocators of Arrow's reserve more memory than they use.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    program = LIMITED + dedent(READERS[reader])
    done = subprocess.run([sys.executable, "-c", program, path], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, [str(ROWS), "1"]), done.stderr
