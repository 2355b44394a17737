"""Random lives of datasets that gain optional fields between ingests, against a model of plain Python (SCHEMA-5).

Every merge strategy, a derivative, queries of each version, files and a second node, which verifies and re-executes.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import odf_node
from support import merge_oracle as oracle
from support.nodes import RealNode

UNSHRUNK: dict[str, Any] = {  # a life takes seconds: the first that fails is shown as it is
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}
SEEDS = st.integers(0, 2**32)  # Hypothesis would begin with the poorest lives
EXAMPLES = max(settings().max_examples // 15, 1)
TIME = "event_time"
SECONDS = (10, 20, 30)
EVOLVES, PULLS = 0.7, 0.4  # between two ingests
KINDS: dict[str, tuple[str, list[Any]]] = {
    "text": ("String", ["x", "y", None]),
    "number": ("Int32", [0, 1, None]),
    "ratio": ("Float64", [0.0, -0.0, 1.5, None]),
}
IS_QUICK = settings().max_examples <= 15
MERGES = ("Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream")
HAS_OPERATIONS = {"UpsertStream", "ChangelogStream"}
Fields = dict[str, Any]
"""The optional columns of a dataset in their order: each a kind, or the members of a struct."""


def optional(kind: Any) -> dict[str, Any]:
    return {"kind": "Option", "inner": kind}


def type_of(kind: Any) -> Any:
    if isinstance(kind, dict):
        return {"kind": "Struct", "fields": [{"name": n, "type": optional(type_of(k))} for n, k in kind.items()]}
    return KINDS[kind][0]


def value_of(kind: Any, choose: Random) -> Any:
    if isinstance(kind, dict):
        return choose.choice([None, *[{name: value_of(each, choose) for name, each in kind.items()}] * 3])
    return choose.choice(KINDS[kind][1])


def widened(value: Any, kind: Any) -> Any:
    """A value with null for the members that it lacks."""
    if isinstance(kind, dict):
        return None if value is None else {name: widened(value.get(name), each) for name, each in kind.items()}
    return value


def manifest(merge: str, fields: Fields) -> str:
    listed = [{"name": TIME, "type": optional({"kind": "Timestamp"})}, {"name": "id", "type": "Int32"}]
    listed += [{"name": name, "type": optional(type_of(kind))} for name, kind in fields.items()]
    if merge in HAS_OPERATIONS:
        listed.insert(0, {"name": "op", "type": "Int32"})
    strategy = {"kind": merge} if merge == "Append" else {"kind": merge, "primaryKey": ["id"]}
    source = {
        "kind": "AddPushSource",
        "sourceName": "default",
        "read": {"kind": "NdJson", "schema": {"fields": listed}},
        "merge": strategy,
    }
    content = {"name": "t", "kind": "Root", "metadata": [source]}
    return yaml.safe_dump({"kind": "DatasetSnapshot", "version": 1, "content": content}, sort_keys=False)


def derivative(name: str, engine: str, query: str) -> str:
    transform = {"kind": "Sql", "engine": engine, "query": query}
    event = {"kind": "SetTransform", "inputs": [{"datasetRef": "t", "alias": "t"}], "transform": transform}
    content = {"name": name, "kind": "Derivative", "metadata": [event]}
    return yaml.safe_dump({"kind": "DatasetSnapshot", "version": 1, "content": content}, sort_keys=False)


def evolve(choose: Random, fields: Fields) -> Fields:
    """A new optional column, or member of a struct or of one inside of it, and all columns in another order."""
    number = sum(str(fields).count(name) for name in KINDS)
    kind, found = choose.choice([*KINDS]), dict(fields)
    match choose.choice(["column", "struct", "deep"]):
        case "column":
            found[f"c{number}"] = kind
        case "struct":
            found["place"] = {**fields["place"], f"m{number}": kind}
        case _:
            found["place"] = {**fields["place"], "deep": {f"m{number}": kind, **fields["place"]["deep"]}}
    return {name: found[name] for name in choose.sample([*found], len(found))}


def batch_of(choose: Random, merge: str, fields: Fields, current: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = [choose.randint(1, 3) for _ in range(choose.randint(1, 5))]
    if merge == "Snapshot":  # of rows of one key it takes the first, and sets the others aside
        ids = [*dict.fromkeys(ids)]
    rows: list[dict[str, Any]] = [
        {"t": choose.choice(SECONDS), "id": each} | {name: value_of(kind, choose) for name, kind in fields.items()}
        for each in ids
    ]
    if merge == "UpsertStream":
        return [{"op": choose.choice([0, 0, 1]), **each} for each in rows]
    if merge == "ChangelogStream":
        # What takes a row back names a current one, whole, as it is read now.
        left, changes = [*current], list[dict[str, Any]]()
        for each in rows:
            op = choose.choice([0, 1, 2] if left else [0])
            if op:
                changes.append({"op": op, **left.pop(choose.randrange(len(left)))})
            changes += [] if op == 1 else [{"op": 3 if op else 0, **each}]
        return changes
    return rows


def decide(merge: str, history: list[oracle.Change], batch: list[dict[str, Any]]) -> list[oracle.Change]:
    def key(row: oracle.Row) -> tuple[Any, ...]:
        return (row["id"],)

    match merge:
        case "Append":
            return oracle.append(batch, 0)
        case "Ledger":
            return oracle.ledger(history, batch, key, 0)
        case "Snapshot":
            return oracle.snapshot(history, batch, key)
        case "UpsertStream":
            return oracle.upsert(history, batch, key)
    return oracle.changelog(batch, key)


def shown(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True).replace("-0.0", "0.0")


def current_of(history: Sequence[oracle.Change]) -> list[dict[str, Any]]:
    counts: Counter[str] = Counter()
    for op, row in history:
        counts[shown(row)] += 1 if op in {oracle.APPEND, oracle.CORRECT_TO} else -1
    return [json.loads(each) for each in sorted((+counts).elements())]


def read(rows: Sequence[dict[str, Any]], fields: Fields) -> list[tuple[int, dict[str, Any]]]:
    """Rows of a table as the model has them, with their operations."""
    found = []
    for each in rows:
        seconds = int((each[TIME] - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        found.append((each.get("op", 0), {"t": seconds, "id": each["id"], **{name: each[name] for name in fields}}))
    return found


def bag(changes: Sequence[tuple[int, dict[str, Any]]]) -> Counter[tuple[int, str]]:
    return Counter((op, shown(row)) for op, row in changes)


class Life:
    """One dataset of a node, and what it should be."""

    def __init__(self, node: RealNode, merge: str, fields: Fields) -> None:
        self.node, self.merge, self.fields = node, merge, fields
        self.history: list[oracle.Change] = []
        self.versions: list[tuple[int, list[dict[str, Any]]]] = []
        self.pulled: dict[str, Fields] = {}
        self._declare("add")

    def _declare(self, *words: str) -> None:
        path = self.node.home.parent / "t.yaml"
        path.write_text(manifest(self.merge, self.fields))
        self.node.must(*words, str(path))

    def evolve(self, fields: Fields) -> None:
        self.fields = fields
        self._declare("add", "--replace", "--evolve")
        self.history = [(op, self._as_now(row)) for op, row in self.history]

    def _as_now(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"t": row["t"], "id": row["id"]} | {n: widened(row.get(n), kind) for n, kind in self.fields.items()}

    def ingest(self, batch: list[dict[str, Any]]) -> None:
        lines = [{TIME: f"1970-01-01T00:00:{row['t']}Z", **row} for row in batch]
        for each in lines:
            del each["t"]
        text = "".join(json.dumps(each) + "\n" for each in lines)
        ran = self.node.run("ingest", "t", "--stdin", standard_input=text)
        assert ran.code == 0, ran.err
        self.history += decide(self.merge, self.history, batch)

    def note_version(self) -> None:
        with odf_node.open(self.node.home) as node:
            (found,) = node.datasets("t")
        self.versions.append((found.blocks - 1, current_of(self.history)))

    def derive(self, name: str, engine: str, query: str, fields: Fields) -> None:
        path = self.node.home.parent / f"{name}.yaml"
        path.write_text(derivative(name, engine, query))
        self.node.must("add", str(path))
        self.pulled[name] = fields

    def check(self, home: Path) -> None:
        """Compare a home that has the dataset with the model."""
        with odf_node.open(home) as node:
            table = node.table("t")
            assert bag(read(table.to_arrow().to_pylist(), self.fields)) == bag(self.history)
            for version, rows in self.versions:
                state = node.table("t", version=version).state().to_arrow()
                # A version has the columns that it had; those that came since are null in what was there.
                known = {name: kind for name, kind in self.fields.items() if name in state.schema.names}
                found = [self._as_now(row) for _, row in read(state.to_pylist(), known)]
                assert sorted(map(shown, found)) == sorted(shown(self._as_now(row)) for row in rows), version
            for name, fields in self.pulled.items():
                if fields:
                    mapped = read(node.table(name).to_arrow().to_pylist(), fields)
                    expected = [
                        (op, {"t": row["t"], "id": row["id"], **{each: row[each] for each in fields}})
                        for op, row in self.history
                    ]
                    if (
                        name[0] == "m"
                    ):  # Spark's maps leave out pairs that correct nothing, and part others (MAP-3, MAP-5)
                        assert current_of(mapped) == current_of(expected), name
                    else:
                        assert bag(mapped) == bag(expected), name


def live(choose: Random, folder: Path, merge: str, *, has_spark: bool = False) -> None:
    fields: Fields = {"v": "text", "place": {"x": "number", "deep": {"y": "text"}}, "w": "ratio"}
    life = Life(RealNode(folder / "home", has_engine=has_spark), merge, fields)
    for number in range(choose.randint(3, 5)):
        if number and choose.random() < EVOLVES:
            life.evolve(evolve(choose, life.fields))
        life.ingest(batch_of(choose, merge, life.fields, current_of(life.history)))
        life.note_version()
        if number in {0, 2} and life.history:
            plain = {name: kind for name, kind in life.fields.items() if isinstance(kind, str)}
            columns = ", ".join(["op", TIME, "id", *plain])
            life.derive(f"d{number}", "datafusion", f"SELECT {columns} FROM t", plain)
            if has_spark:
                life.derive(f"m{number}", "spark", f"SELECT {columns} FROM t", plain)
                counted = f"SELECT max({TIME}) AS {TIME}, id, count(*) AS n FROM t GROUP BY id"
                life.derive(f"v{number}", "spark", counted, {})
        if life.pulled and choose.random() < PULLS:
            life.node.must("pull", *life.pulled)
    life.node.must("pull", *life.pulled)
    life.check(life.node.home)
    names = ["t", *life.pulled]
    if has_spark:
        counts = Counter(row["id"] for row in current_of(life.history))
        for name in (each for each in life.pulled if each[0] == "v"):
            asked = life.node.must("sql", "-c", f"SELECT id, n FROM {name}__state", "-o", "json").json()
            assert {row["id"]: row["n"] for row in asked} == counts

    life.node.must("export", *names, "--to", str(folder / "out"))
    imported = RealNode(folder / "imported", has_engine=has_spark)
    imported.must("import", *(str(folder / "out" / name) for name in names))
    life.check(imported.home)
    verified = imported.must("verify", *names, "--all").out
    assert verified.count("re-executed with an equal result") == len(life.pulled)


@pytest.mark.usefixtures("light_engines")
@pytest.mark.parametrize("merge", MERGES[2:4] if IS_QUICK else MERGES)
@settings(max_examples=EXAMPLES, **UNSHRUNK)
@given(seed=SEEDS)
def test_dataset_that_gains_fields_is_what_its_model_is_everywhere_schema_5(merge: str, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(Random(seed), Path(folder), merge)


@pytest.mark.spark
@pytest.mark.parametrize("merge", MERGES)
@settings(max_examples=1, **UNSHRUNK)
@given(seed=SEEDS)
def test_views_of_spark_over_datasets_that_gain_fields_are_re_executed_schema_5(merge: str, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(Random(seed), Path(folder), merge, has_spark=True)
