"""Random lives of datasets that gain optional fields between ingests, against a model of plain Python (SCHEMA-5).

Every merge strategy, a derivative, queries of each version, files and a second node, which verifies and re-executes.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
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
EXAMPLES = max(settings().max_examples // 15, 1)
TIME = "event_time"
SECONDS = (10, 20, 30)
KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": ("String", st.sampled_from(["x", "y"])),
    "number": ("Int32", st.integers(0, 2)),
    "ratio": ("Float64", st.sampled_from([0.0, -0.0, 1.5])),
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


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, dict):
        return st.none() | st.fixed_dictionaries({name: values_of(each) for name, each in kind.items()})
    return st.none() | KINDS[kind][1]


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


def evolve(data: st.DataObject, fields: Fields) -> Fields:
    """A new optional column, or member of a struct or of one inside of it, and all columns in another order."""
    number = sum(str(fields).count(name) for name in ("text", "number", "ratio"))
    kind = data.draw(st.sampled_from([*KINDS]), label="kind")
    place = data.draw(st.sampled_from(["column", "struct", "deep"]), label="place")
    found = dict(fields)
    if place == "column":
        found[f"c{number}"] = kind
    elif place == "struct":
        found["place"] = {**fields["place"], f"m{number}": kind}
    else:
        found["place"] = {**fields["place"], "deep": {f"m{number}": kind, **fields["place"]["deep"]}}
    names = data.draw(st.permutations([*found]), label="order")
    return {name: found[name] for name in names}


def draw_batch(
    data: st.DataObject, merge: str, fields: Fields, current: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries(
        {"t": st.sampled_from(SECONDS), "id": st.integers(1, 3), **{name: values_of(k) for name, k in fields.items()}}
    )
    # Of rows of one key a snapshot takes the first, and sets the others aside.
    unique = (lambda each: each["id"]) if merge == "Snapshot" else None
    rows = data.draw(st.lists(row, min_size=1, max_size=5, unique_by=unique), label="rows")
    if merge == "UpsertStream":
        return [{"op": data.draw(st.sampled_from([0, 0, 1])), **each} for each in rows]
    if merge == "ChangelogStream":
        # What takes a row back names a current one, whole, as it is read now.
        left, changes = [*current], list[dict[str, Any]]()
        for each in rows:
            op = data.draw(st.sampled_from([0, 1, 2] if left else [0]))
            if op:
                old = left.pop(data.draw(st.integers(0, len(left) - 1)))
                changes.append({"op": op, **old})
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
                    assert bag(mapped) == bag(expected), name


def live(data: st.DataObject, folder: Path, merge: str, *, has_spark: bool = False) -> None:
    fields: Fields = {"v": "text", "place": {"x": "number", "deep": {"y": "text"}}, "w": "ratio"}
    life = Life(RealNode(folder / "home", has_engine=has_spark), merge, fields)
    steps = data.draw(st.integers(3, 5), label="steps")
    for number in range(steps):
        if number and data.draw(st.booleans(), label="evolves"):
            life.evolve(evolve(data, life.fields))
        life.ingest(draw_batch(data, merge, life.fields, current_of(life.history)))
        life.note_version()
        if number in {0, 2} and life.history:
            plain = {name: kind for name, kind in life.fields.items() if isinstance(kind, str)}
            columns = ", ".join(["op", TIME, "id", *plain])
            life.derive(f"d{number}", "datafusion", f"SELECT {columns} FROM t", plain)
            if has_spark:
                life.derive(f"m{number}", "spark", f"SELECT {columns} FROM t", plain)
                counted = f"SELECT max({TIME}) AS {TIME}, id, count(*) AS n FROM t GROUP BY id"
                life.derive(f"v{number}", "spark", counted, {})
        if life.pulled and data.draw(st.booleans(), label="pulls"):
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
@given(data=st.data())
def test_dataset_that_gains_fields_is_what_its_model_is_everywhere_schema_5(merge: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(data, Path(folder), merge)


@pytest.mark.spark
@pytest.mark.parametrize("merge", MERGES)
@settings(max_examples=1, **UNSHRUNK)
@given(data=st.data())
def test_views_of_spark_over_datasets_that_gain_fields_are_re_executed_schema_5(
    merge: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(data, Path(folder), merge, has_spark=True)
