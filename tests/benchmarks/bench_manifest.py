"""How fast manifests are read and written, in CPU seconds. Goal: 1,000 events are read in under a second.

Run: ``python tests/benchmarks/bench_manifest.py``
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    MergeStrategyUpsertStream,
    ReadStepCsv,
)
from odf_protocol.manifest import DatasetSnapshot, manifest_to_json, manifest_to_yaml
from support.manifests import parse_manifest

EVENTS = 1_000
GOAL_S = 1.0
REPEATS = 5


def best_s(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def snapshot() -> DatasetSnapshot:
    """A thousand push sources with five columns each."""
    types = (DataTypeInt64(), DataTypeTimestamp(), DataTypeString(), DataTypeString(), DataTypeInt64())
    fields = tuple(DataField(name=f"column_{i}", type=DataTypeOption(inner=type_)) for i, type_ in enumerate(types))
    events = tuple(
        AddPushSource(
            source_name=f"source-{i}",
            read=ReadStepCsv(header=True, schema=DataSchema(fields=fields)),
            merge=MergeStrategyUpsertStream(primary_key=("column_0",)),
        )
        for i in range(EVENTS)
    )
    return DatasetSnapshot(name="bench", kind=DatasetKind.ROOT, metadata=events)


def main() -> int:
    made = snapshot()
    as_yaml, as_json = manifest_to_yaml(made), manifest_to_json(made)
    read_s = best_s(lambda: parse_manifest(as_yaml, source_name="bench.yaml"))
    print(f"read YAML   {EVENTS} events, {len(as_yaml) / 1e6:.2f} MB: {read_s:.2f} s")
    json_s = best_s(lambda: parse_manifest(as_json, source_name="bench.json"))
    print(f"read JSON   {EVENTS} events, {len(as_json) / 1e6:.2f} MB: {json_s:.2f} s")
    print(f"write YAML  {EVENTS} events: {best_s(lambda: manifest_to_yaml(made)):.2f} s")
    print(f"write JSON  {EVENTS} events: {best_s(lambda: manifest_to_json(made)):.2f} s")
    return 0 if read_s < GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
