"""Another ODF implementation runs one query with its own engine and with ours, over the same real rows.

Each pull starts an engine, as that implementation does for every step: its own is a native program that is ready at
once, ours starts Java and Spark. What a step costs without the start is measured with a server that is warm.

Run: ``ODF_PEER=FOLDER python tests/benchmarks/bench_engine_with_kamu.py``; without ``ODF_PEER`` there is nothing to
compare with. Seconds; the best of several rounds in turn counts, since other work on the machine only ever adds.
"""

import gzip
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_protocol.engine_messages import TransformResponseSuccess
from odf_protocol.events import OffsetInterval
from support.engine_server import running_server
from support.engine_workspace import Workspace

SOURCE = Path(__file__).parents[2] / "examples/covid/data/countries-aggregated-2020-10-01.csv.gz"
ROUNDS = 3
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


def best_pull(workspace: Workspace, engine: str, round_: int) -> float:
    name = f"by.{engine}.{round_}"
    workspace.add("2024-01-01T12:00:00Z", derivative(name, engine))
    started = time.perf_counter()
    workspace.run_with_engine("--system-time", "2024-01-03T12:00:00Z", "pull", name)
    return time.perf_counter() - started


def warm_steps(rows: Path, folder: Path) -> list[float]:
    """Run the step directly on a warm server; the first answer includes what is left of the start."""
    seconds = []
    with running_server(folder) as server:
        shown = folder / "in" / "daily.parquet"
        shown.write_bytes(rows.read_bytes())
        last_offset = pq.read_metadata(shown).num_rows - 1
        for number in range(1 + 2 * ROUNDS):
            request = server.request(" ".join(QUERY.split()), f"step-{number}", data_paths=[str(shown)])
            (source,) = request.query_inputs
            source = replace(
                source,
                query_alias="daily",
                schema_file=str(shown),
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
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "server").mkdir()
        workspace = Workspace(Path(folder))
        workspace.add("2024-01-01T12:00:00Z", ROOT)
        _, *lines = gzip.decompress(SOURCE.read_bytes()).decode().splitlines()
        text = "\n".join(["event_time,country,confirmed,recovered,deaths", *lines])
        workspace.ingest("2024-01-02T12:00:00Z", "countries.daily", text + "\n")
        (slice_,) = (workspace.folder / ".kamu/datasets").glob("*/data/*")
        found: dict[str, list[float]] = {"spark": [], "datafusion": []}
        for round_ in range(ROUNDS):
            for engine, seconds in found.items():
                seconds.append(best_pull(workspace, engine, round_))
        first, *warm = warm_steps(slice_, Path(folder) / "server")
        print(f"{len(lines)} rows, one step")
        print(f"  pull with its own engine (datafusion)  {min(found['datafusion']):6.2f} s")
        print(f"  pull with our engine (spark)           {min(found['spark']):6.2f} s")
        print(f"  step alone, our engine, first          {first:6.2f} s")
        print(f"  step alone, our engine, warm           {min(warm):6.2f} s")


if __name__ == "__main__":
    main()
