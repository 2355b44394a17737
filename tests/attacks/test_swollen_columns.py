"""Files of some kilobytes that hold the same long text in each row: what chooses slices takes little memory for them.

WINDOW-11 in ``spec/extensions/event-windows.md``, ASOF-11 in ``spec/extensions/as-of-joins.md``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from odf_engines.host.slice_file import open_slice_file

ROWS, GROUPS, LONG = 3_000, 20, 40_000
"""2.4 GB of texts."""
MOST_BYTES = 768 * 1024**2
READER = f"""
import resource, sys
from pathlib import Path

resource.setrlimit(resource.RLIMIT_DATA, ({MOST_BYTES}, {MOST_BYTES}))
from odf_node.rows.event_times import find_newest, read_times_beside

found = read_times_beside(Path(sys.argv[1]), "t", ("k", "op"))
print(found.num_rows, find_newest(found).num_rows)
"""


def write_swollen(path: Path) -> None:
    schema = pa.schema([("op", pa.int32()), ("t", pa.timestamp("ms", "UTC")), ("k", pa.string())])
    columns = [[0] * ROWS, range(ROWS), ["a" * LONG] * ROWS]
    rows = pa.table([pa.array(each, kind) for each, kind in zip(columns, schema.types, strict=True)], schema=schema)
    with open_slice_file(path, schema) as writer:
        for _ in range(GROUPS):
            writer.write_table(rows)


def test_text_that_is_repeated_in_each_row_takes_no_memory_for_each_row(tmp_path):
    path = tmp_path / "rows.parquet"
    write_swollen(path)
    assert path.stat().st_size < 200_000
    # Other allocators of Arrow's reserve more memory than they use.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run([sys.executable, "-c", READER, path], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, [str(ROWS * GROUPS), "1"]), done.stderr
