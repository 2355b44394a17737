"""A CSV file appended to a root dataset, beside others who do the same with it: ratios of one run.

    bench_ingest.py [ROWS] [WAY ...]    default: 1,000,000 and all ways

Ways are ``arrow`` and ``spark``, the engines; ``plain``, Spark from CSV to Parquet without a node; and ``peer``, the
programs of another implementation, where ``ODF_PEER`` names their folder. Prints seconds, processor seconds and the
most memory that a process had, for a start of each engine, for 100 rows in one that runs, and for the large file:
appended, appended with one bad row of a hundred, judged by 1 and by 20 validators, taken as a first snapshot, and as a
second one of which one row of a hundred changed; and appended once more on one core. Of ``arrow`` it also prints which
share of the processor time is of the thread that hands work to the others, and which of the second snapshot's goes into
its state: both are the same however busy the machine is.

Goals: appended in 1.3 times plain Spark and within 2 GiB; with bad rows in 1.1 times without; the second snapshot in
half of the peer's time; less time with two cores than with one.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_engines.contract import IngestRequest, IngestResponse, Limits
from odf_engines.engine import EngineSession
from odf_engines.ingest import leaving
from odf_engines.ingest.appending import ingest_source
from odf_engines.ingest.result import Folders
from odf_engines.ingest_parts import ValidatorCall
from odf_engines.plug_in_names import VALIDATORS as BUILT_IN
from odf_engines.records.ahead import cores
from odf_engines.registry import get_engine
from odf_protocol.events import (
    DataTypeDate,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeString,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStepCsv,
)
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.ingests import schema
from support.process_figures import list_family, peak_bytes, processor_s

Result = TypeVar("Result")

NOW = Timestamp.parse("2024-02-01T00:00:00Z")
SCHEMA = schema(
    event_time=DataTypeDate(), id=DataTypeInt64(), name=DataTypeString(), x=DataTypeFloat64(), y=DataTypeInt64()
)


def validator(name: str, **parameters: object) -> ValidatorCall:
    place = BUILT_IN.find_place(name)
    assert place is not None
    return ValidatorCall(name=name, module=place[0], attribute=place[1], parameters=json.dumps(parameters))


NUMBERS = ("y", "id", "x")
VALIDATORS = (
    *(validator("Range", column=name, least="-1", most=str(10**most)) for most in (10, 11, 12) for name in NUMBERS),
    *(validator("Required", columns=[name]) for name in (*NUMBERS, "name", "event_time")),
    *(validator("Required", columns=[one, "name"]) for one in NUMBERS),
    *(validator("Format", column="name", pattern=f"name [0-9]{{1,{most}}}") for most in (4, 5)),
    validator("Unique", columns=["id"]),
)


def write_source(path: Path, rows: int, changed: int = 0, bad: int = 0) -> Path:
    """Write rows in no order of time; of a hundred ``changed`` have another value, and ``bad`` one that is none."""
    with path.open("w") as file:
        for i in range(rows):
            day = f"2020-{i * 7 % 12 + 1:02d}-{i * 11 % 28 + 1:02d}"
            value = "many" if i % 100 < bad else i * 13 % 977 + (i % 100 < changed)
            file.write(f"{day},{i},name {i % 1000},{i * 0.37:.3f},{value}\n")
    return path


def timed(what: str, work: Callable[[], Result]) -> tuple[float, Result]:
    started, used = time.perf_counter(), used_s()
    result = work()
    seconds = time.perf_counter() - started
    family = list_family(os.getpid())[1:]
    memory = max(map(peak_bytes, family)) if family else resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{what:<60} {seconds:8.2f} s {used_s() - used:8.2f} s of processor {memory / 1e6:8.0f} MB", flush=True)
    return seconds, result


def used_s() -> float:
    """Processor seconds of this process, and of those that it started, whether they live or not."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return processor_s(list_family(os.getpid())) + ended.ru_utime + ended.ru_stime


def ingest(
    session: EngineSession,
    path: Path,
    merge: MergeStrategy,
    before: IngestResponse | None = None,
    validators: tuple[ValidatorCall, ...] = (),
) -> IngestResponse:
    return session.ingest(replace(request_of(path, merge, before), validators=validators))


def request_of(path: Path, merge: MergeStrategy, before: IngestResponse | None = None) -> IngestRequest:
    interval = None if before is None else before.offset_interval
    return IngestRequest(
        dataset_id="did:odf:bench",
        read=ReadStepCsv(schema=SCHEMA),
        preprocess=None,
        merge=merge,
        vocabulary=Vocabulary(),
        source_path=path,
        source_name=path.name,
        known_schema=None if before is None else data_schema_of(before.schema),
        state_path=None if before is None else before.state_path,
        system_time=NOW,
        fallback_event_time=NOW,
        next_offset=0 if interval is None else interval.end + 1,
    )


def print_shares(work: Path, large: Path, changed: Path, first: IngestResponse) -> None:
    """Append, and merge the second snapshot, in this process, and print which thread and step used it how much."""
    from odf_engines.arrow.sorting import DiskOrder
    from odf_engines.merging.merge import merge_records

    states: list[float] = []
    write_state = leaving.write_state

    def write_and_measure(*arguments: Any, **named: Any) -> None:
        began = time.process_time()
        write_state(*arguments, **named)
        states.append(time.process_time() - began)

    def share(name: str, request: IngestRequest) -> tuple[float, float]:
        folder = work / name
        (folder / "work").mkdir(parents=True)
        order = DiskOrder(folder / "work", Limits().memory_bytes)
        merge = partial(merge_records, order=order, scratch=folder / "work")
        began, of_thread = time.process_time(), time.thread_time()
        ingest_source(request, Folders(folder / "work", folder), merge)
        return time.process_time() - began, time.thread_time() - of_thread

    for number in range(2):  # the first one warms
        used, of_thread = share(f"append-{number}", request_of(large, MergeStrategyAppend()))
    print(f"{'':<4}{of_thread / used:.2f} of the processor time of an append is of the thread that hands out work")
    leaving.write_state = write_and_measure  # type: ignore[assignment]
    used, _ = share("second", request_of(changed, MergeStrategySnapshot(primary_key=("id",)), first))
    leaving.write_state = write_state
    print(f"{'':<4}{sum(states) / used:.2f} of the processor time of the second snapshot is of its state")


def copy_with_arrow(source: Path, target: Path) -> None:
    names = [field.name for field in SCHEMA.fields]
    read = pyarrow.csv.ReadOptions(column_names=names, use_threads=False)
    pq.write_table(pyarrow.csv.read_csv(source, read_options=read), target)


def copy_with_spark(source: Path, target: Path) -> float:
    from pyspark.sql import SparkSession

    types = "event_time DATE, id BIGINT, name STRING, x DOUBLE, y BIGINT"
    with SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate() as spark:
        spark.range(1).count()
        copy = partial(spark.read.schema(types).csv(str(source)).write.parquet, str(target))
        return timed("plain Spark, CSV to Parquet", copy)[0]


PEER_DATASET = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, ddlSchema: [event_time DATE, id BIGINT, name STRING, x DOUBLE, y BIGINT]}}
      merge: {merge}
"""


def ingest_with_peer(folder: Path, large: Path, changed: Path) -> dict[str, float]:
    """Do the same with another implementation; each command starts it anew."""
    folder.mkdir()

    def run(*words: str) -> None:
        ran = subprocess.run(
            [Path(os.environ["ODF_PEER"], "kamu"), "-q", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise SystemExit(f"{words}: {ran.stdout}{ran.stderr}")

    run("init")
    took = {}
    for name, merge in (("appended", "{kind: Append}"), ("kept", "{kind: Snapshot, primaryKey: [id]}")):
        (folder / f"{name}.yaml").write_text(PEER_DATASET.format(name=name, merge=merge))
        run("add", f"{name}.yaml")
    for what, name, path in (
        ("appended", "appended", large),
        ("as a snapshot", "kept", large),
        ("and with 1 % changed", "kept", changed),
    ):
        took[what], _ = timed(f"peer: {what}", partial(run, "ingest", name, str(path), "--input-format", "csv"))
    return took


def main(rows: int, ways: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        small, large = write_source(work / "small.csv", 100), write_source(work / "large.csv", rows)
        changed, dirty = write_source(work / "changed.csv", rows, 1), write_source(work / "dirty.csv", rows, bad=1)
        print(f"{rows:,} rows, {large.stat().st_size / 1e6:.0f} MB, {cores()} cores")
        peer = ingest_with_peer(work / "peer", large, changed) if "peer" in ways and os.environ.get("ODF_PEER") else {}
        plain, _ = timed("Arrow alone, CSV to Parquet", partial(copy_with_arrow, large, work / "copy.parquet"))
        took = {}
        for name in (each for each in ways if each not in {"plain", "peer"}):
            took[name] = ingest_with_engine(name, work, small, large, dirty, changed, plain, peer)
        # Last, as its Java stays.
        if "plain" in ways:
            spark_s = copy_with_spark(large, work / "copy-of-spark")
            print(
                *(
                    f"{name}: large file appended in {each / spark_s:.2f} times plain Spark"
                    for name, each in took.items()
                )
            )


def ingest_with_engine(
    name: str, work: Path, small: Path, large: Path, dirty: Path, changed: Path, plain: float, peer: dict[str, float]
) -> float:
    """Return the seconds of the large file appended."""
    append = MergeStrategyAppend()
    with get_engine(name).open(work, Limits()) as session:
        timed(f"{name}: start", session.start)
        timed(f"{name}: first 100 rows", partial(ingest, session, small, append))
        timed(f"{name}: 100 rows again", partial(ingest, session, small, append))
        took, _ = timed(f"{name}: large file appended", partial(ingest, session, large, append))
        print(f"{'':<4}{took / plain:.1f} times Arrow alone{_beside(peer, 'appended', took)}")
        with_bad, _ = timed(f"{name}: large file with 1 % bad rows appended", partial(ingest, session, dirty, append))
        print(f"{'':<4}{with_bad / took:.2f} times without")
        for count in (1, len(VALIDATORS)):
            judge = partial(ingest, session, large, append, validators=VALIDATORS[:count])
            timed(f"{name}: large file appended with {count} validators", judge)
        snapshot = MergeStrategySnapshot(primary_key=("id",))
        first_s, first = timed(f"{name}: large file as a snapshot", partial(ingest, session, large, snapshot))
        again_s, _ = timed(f"{name}: and with 1 % changed", partial(ingest, session, changed, snapshot, first))
        print(f"{'':<4}{again_s / first_s:.2f} times the first{_beside(peer, 'and with 1 % changed', again_s)}")
        if name == "arrow":
            print_shares(work / "shares", large, changed, first)
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        os.sched_setaffinity(0, {min(allowed)})
        try:
            with get_engine(name).open(work, Limits()) as session:
                session.start()
                ingest(session, small, append)
                alone, _ = timed(f"{name}: large file appended on one core", partial(ingest, session, large, append))
        finally:
            os.sched_setaffinity(0, allowed)
        print(f"{'':<4}{alone / took:.2f} times that on {len(allowed)}")
    return took


def _beside(peer: dict[str, float], what: str, seconds: float) -> str:
    return f", {seconds / peer[what]:.2f} times the peer" if peer else ""


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:] or ["peer", "plain", "arrow", "spark"])
