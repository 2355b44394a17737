"""Another ODF implementation runs one map over ten million rows with its own engine and with ours.

Each pull, and each verification, starts an engine, as that implementation does for every step: its own is a native
program that is ready at once, ours starts Java and Spark. What a step costs without the start is measured with a server
that is warm; what the same query costs from Parquet to Parquet, in plain Spark.

Run: ``ODF_PEER=FOLDER python tests/benchmarks/bench_engine_with_kamu.py [ROWS]``; without ``ODF_PEER`` there is nothing
to compare with. Seconds; the best of several rounds in turn counts, since other work on the machine only ever adds.
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_map_transform import stock

from odf_protocol.engine_messages import TransformResponseSuccess
from odf_protocol.events import OffsetInterval
from support.engine_server import running_server
from support.engine_workspace import Workspace

ROWS = 10_000_000
ROUNDS = 2
QUERY = """
SELECT event_time, country, confirmed, deaths, confirmed - recovered - deaths AS active FROM daily WHERE confirmed > 0
"""

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: countries.daily
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {name: event_time, type: {kind: Option, inner: {kind: Date}}}
            - {name: country, type: {kind: Option, inner: String}}
            - {name: confirmed, type: {kind: Option, inner: Int64}}
            - {name: recovered, type: {kind: Option, inner: Int64}}
            - {name: deaths, type: {kind: Option, inner: Int64}}
      merge: {kind: Append}
"""

DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: countries.daily, alias: daily}]
      transform: {kind: Sql, engine: ENGINE, query: "QUERY"}
"""


def derivative(name: str, engine: str) -> str:
    text = DERIVATIVE.replace("NAME", name).replace("ENGINE", engine)
    return text.replace("QUERY", " ".join(QUERY.split()))


def write_source(path: Path, rows: int) -> None:
    """Write days, countries and counts as CSV; some rows are filtered away."""
    chance = np.random.default_rng(1)
    confirmed = chance.integers(0, 1_000_000, rows) * (chance.random(rows) > 0.1)
    days = np.datetime64("2020-01-01") + (np.arange(rows) * 300 // rows)
    words = pa.array([f"country {number}" for number in range(190)])
    columns = {
        "event_time": pa.array(days),
        "country": words.take(pa.array(chance.integers(0, 190, rows))),
        "confirmed": confirmed,
        "recovered": confirmed // 2,
        "deaths": confirmed // 50,
    }
    pyarrow.csv.write_csv(pa.table(columns), path)


def pull_and_verify(workspace: Workspace, engine: str, round_: int) -> tuple[float, float]:
    """Return seconds of making the step, and of running it again."""
    name = f"by.{engine}.{round_}"
    workspace.add("2024-01-01T12:00:00Z", derivative(name, engine))
    started = time.perf_counter()
    workspace.run_with_engine("--system-time", "2024-01-03T12:00:00Z", "pull", name)
    pulled = time.perf_counter()
    workspace.run_with_engine("verify", name)
    return pulled - started, time.perf_counter() - pulled


def warm_steps(rows: Path, folder: Path) -> list[float]:
    """Run the step directly on a warm server; the first answer includes what is left of the start."""
    seconds = []
    with running_server(folder) as server:
        shown, columns = folder / "in" / "daily.parquet", folder / "in" / "columns.parquet"
        # The other implementation tells the columns by a file without rows; ours takes no large one for it.
        pq.write_table(pq.read_schema(rows).empty_table(), columns)
        shown.write_bytes(rows.read_bytes())
        last_offset = pq.read_metadata(shown).num_rows - 1
        for number in range(1 + 2 * ROUNDS):
            request = server.request(" ".join(QUERY.split()), f"step-{number}", data_paths=[str(shown)])
            (source,) = request.query_inputs
            source = replace(
                source,
                query_alias="daily",
                schema_file=str(columns),
                offset_interval=OffsetInterval(start=0, end=last_offset),
            )
            started = time.perf_counter()
            answer = server.transform(replace(request, query_inputs=(source,)))
            seconds.append(time.perf_counter() - started)
            assert isinstance(answer, TransformResponseSuccess), answer
    return seconds


def main() -> None:
    if "ODF_PEER" not in os.environ:
        print("ODF_PEER does not name the folder of a peer's programs: nothing to compare with")
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server").mkdir()
        workspace = Workspace(folder)
        workspace.add("2024-01-01T12:00:00Z", ROOT)
        write_source(workspace.folder / "rows.csv", rows)
        workspace.run_with_engine("--system-time", "2024-01-02T12:00:00Z", "ingest", "countries.daily", "rows.csv")
        (slice_,) = (workspace.folder / ".kamu/datasets").glob("*/data/*")
        found: dict[str, list[tuple[float, float]]] = {"spark": [], "datafusion": []}
        plain_s = []
        for round_ in range(ROUNDS):
            for engine, seconds in found.items():
                seconds.append(pull_and_verify(workspace, engine, round_))
            plain_s.append(stock(slice_, folder, QUERY.replace("daily", "orders"))[1])
        first_s, *warm_s = warm_steps(slice_, folder / "server")
    pull_s, verify_s = (
        {engine: min(pair[position] for pair in pairs) for engine, pairs in found.items()} for position in (0, 1)
    )
    print(f"{rows:,} rows, one step, best of {ROUNDS}, in seconds")
    print(f"pull:   its own engine {pull_s['datafusion']:6.2f}, ours {pull_s['spark']:6.2f}", end=", ")
    print(f"ratio {pull_s['spark'] / pull_s['datafusion']:.2f}")
    print(f"verify: its own engine {verify_s['datafusion']:6.2f}, ours {verify_s['spark']:6.2f}", end=", ")
    print(f"ratio {verify_s['spark'] / verify_s['datafusion']:.2f}")
    print(f"step alone in our server: the first {first_s:.2f}, warm {min(warm_s):.2f}")
    print(f"plain Spark, query alone: {min(plain_s):.2f}; our warm step / it {min(warm_s) / min(plain_s):.2f}")
    print(
        f"in the pull with ours: step {first_s:.2f}, start of the engine and the rest {pull_s['spark'] - first_s:.2f}"
    )


if __name__ == "__main__":
    main()
