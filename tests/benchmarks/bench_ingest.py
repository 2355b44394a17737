"""A CSV file appended to a root dataset, beside Arrow's reader and writer of the same file: ratios of one run.

    bench_ingest.py [ROWS] [WAY ...]    default: 1,000,000 and all ways

Ways are ``arrow`` and ``spark``, the engines, and ``plain``: Spark from CSV to Parquet, without a node. Prints seconds
for a start of each engine, for 100 rows in one that runs, and for the large file: appended, judged by 1 and by 20
validators, taken as a first snapshot, and as a second one of which one row of a hundred changed. Under
``taskset -c 0`` it says what one core does.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_engines.bad_rows import ValidatorCall
from odf_engines.contract import IngestRequest, IngestResponse, Limits
from odf_engines.engine import EngineSession
from odf_engines.plug_in_names import VALIDATORS as BUILT_IN
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


def write_source(path: Path, rows: int, changed: int = 0) -> Path:
    """Write rows in no order of time; ``changed``: of a hundred, how many have another value."""
    with path.open("w") as file:
        for i in range(rows):
            day = f"2020-{i * 7 % 12 + 1:02d}-{i * 11 % 28 + 1:02d}"
            file.write(f"{day},{i},name {i % 1000},{i * 0.37:.3f},{i * 13 % 977 + (i % 100 < changed)}\n")
    return path


def timed(what: str, work: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    print(f"{what:<60} {seconds:8.2f} s", flush=True)
    return seconds, result


def ingest(
    session: EngineSession,
    path: Path,
    merge: MergeStrategy,
    before: IngestResponse | None = None,
    validators: tuple[ValidatorCall, ...] = (),
) -> IngestResponse:
    interval = None if before is None else before.offset_interval
    return session.ingest(
        IngestRequest(
            dataset_id="did:odf:bench",
            read=ReadStepCsv(schema=SCHEMA),
            preprocess=None,
            merge=merge,
            vocabulary=Vocabulary(),
            source_path=path,
            source_name=path.name,
            known_schema=None if before is None else data_schema_of(before.schema),
            validators=validators,
            state_path=None if before is None else before.state_path,
            system_time=NOW,
            fallback_event_time=NOW,
            next_offset=0 if interval is None else interval.end + 1,
        )
    )


def copy_with_arrow(source: Path, target: Path) -> None:
    names = [field.name for field in SCHEMA.fields]
    read = pyarrow.csv.ReadOptions(column_names=names, use_threads=False)
    pq.write_table(pyarrow.csv.read_csv(source, read_options=read), target)


def copy_with_spark(source: Path, target: Path) -> None:
    from pyspark.sql import SparkSession

    types = "event_time DATE, id BIGINT, name STRING, x DOUBLE, y BIGINT"
    with SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate() as spark:
        spark.range(1).count()
        timed(
            "plain Spark, CSV to Parquet", lambda: spark.read.schema(types).csv(str(source)).write.parquet(str(target))
        )


def main(rows: int, ways: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        small, large = write_source(work / "small.csv", 100), write_source(work / "large.csv", rows)
        changed = write_source(work / "changed.csv", rows, 1)
        print(f"{rows:,} rows, {large.stat().st_size / 1e6:.0f} MB")
        plain, _ = timed("Arrow alone, CSV to Parquet", partial(copy_with_arrow, large, work / "copy.parquet"))
        if "plain" in ways:
            copy_with_spark(large, work / "copy-of-spark")
        for name in (each for each in ways if each != "plain"):
            with get_engine(name).open(work, Limits()) as session:
                timed(f"{name}: start", session.start)
                timed(f"{name}: first 100 rows", partial(ingest, session, small, MergeStrategyAppend()))
                timed(f"{name}: 100 rows again", partial(ingest, session, small, MergeStrategyAppend()))
                took, _ = timed(f"{name}: large file appended", partial(ingest, session, large, MergeStrategyAppend()))
                print(f"{'':<4}{took / plain:.1f} times Arrow alone")
                for count in (1, len(VALIDATORS)):
                    judge = partial(ingest, session, large, MergeStrategyAppend(), validators=VALIDATORS[:count])
                    timed(f"{name}: large file appended with {count} validators", judge)
                snapshot = MergeStrategySnapshot(primary_key=("id",))
                _, first = timed(f"{name}: large file as a snapshot", partial(ingest, session, large, snapshot))
                timed(f"{name}: and with 1 % changed", partial(ingest, session, changed, snapshot, first))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:] or ["plain", "arrow", "spark"])
