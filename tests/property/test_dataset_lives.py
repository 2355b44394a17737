"""Random lives of a dataset of one's own: what every command does to it, against a model of a few lines."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import odf_node
from odf_protocol.timestamp import Timestamp
from support.city_datasets import root_manifest
from support.nodes import RanCommand, RealNode
from support.signing import NOON

pytestmark = pytest.mark.usefixtures("light_engines")

CITIES = st.dictionaries(st.sampled_from(("Oslo", "Rome", "Bern")), st.integers(0, 3), max_size=3)
BAD_LINE = '{"city": "Vad'
NAMES = st.sampled_from(("cities", "towns", "places"))


class DatasetLives(RuleBasedStateMachine):
    """A root that is given whole lists of cities; each command goes through the command line."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self._node = RealNode(self._folder / "home")
        self._name = "cities"
        self._day = 0
        self._taken: list[tuple[Timestamp, dict[str, int]]] = []
        self._bad_rows = 0
        self._seen_changes: list[dict[str, object]] = []
        self._is_published = True

    def teardown(self) -> None:
        verified = self._run("verify", self._name)
        shutil.rmtree(self._folder)
        assert verified.code == 0, verified.err

    @initialize()
    def add(self) -> None:
        manifest = self._folder / "cities.yaml"
        manifest.write_text(root_manifest(merge="{kind: Snapshot, primaryKey: [city]}"))
        self._must("add", str(manifest))

    @rule(cities=CITIES, bad_rows=st.integers(0, 2))
    def ingest(self, cities: dict[str, int], bad_rows: int) -> None:
        bad_rows = min(bad_rows, len(cities))  # of more than half of a batch, nothing is taken
        lines = [json.dumps({"event_time": str(NOON), "city": c, "people": n}) for c, n in cities.items()]
        rows = self._folder / "rows.ndjson"
        rows.write_text("".join(f"{line}\n" for line in (*lines, *[BAD_LINE] * bad_rows)))
        self._must("ingest", self._name, str(rows))
        self._bad_rows += bad_rows
        # A row that cannot be read may be any: while there is one, nothing is missing (ING-48).
        kept = self._taken[-1][1] if bad_rows and self._taken else {}
        self._taken.append((self._now(), kept | cities))

    @rule()
    def ingest_the_same_again(self) -> None:
        if not self._taken:
            return
        rows = self._folder / "rows.ndjson"
        rows.write_text(
            "".join(
                json.dumps({"event_time": str(NOON), "city": city, "people": people}) + "\n"
                for city, people in self._taken[-1][1].items()
            )
        )
        self._must("ingest", self._name, str(rows))
        with odf_node.open(self._node.home) as node:
            assert node.table(self._name).changes().to_arrow().num_rows == len(self._seen_changes)

    @rule(name=NAMES)
    def rename(self, name: str) -> None:
        if name != self._name:
            self._must("rename", self._name, name)
            self._name = name

    @rule()
    def hide_or_publish(self) -> None:
        self._is_published = not self._is_published
        self._must("publish", self._name, *(() if self._is_published else ("--off",)))

    @rule()
    def collect_garbage(self) -> None:
        self._must("gc")

    @rule()
    def read_every_byte_again(self) -> None:
        self._must("scrub")

    @rule(wrong=st.sampled_from(("ingest", "rename", "delete")))
    def mistake_changes_nothing(self, wrong: str) -> None:
        words = {"ingest": ("nothing.ndjson",), "rename": ("no name!",), "delete": ("another", "--yes")}[wrong]
        assert self._run(wrong, self._name, *words).code != 0

    @invariant()
    def rows_are_never_overwritten(self) -> None:
        """What was there stays, in its place; what comes, comes behind it."""
        with odf_node.open(self._node.home) as node:
            if not self._day:
                return
            changes = node.table(self._name).changes().to_arrow().to_pylist()
        assert changes[: len(self._seen_changes)] == self._seen_changes
        assert [row["offset"] for row in changes] == list(range(len(changes)))
        self._seen_changes = changes

    @invariant()
    def what_was_known_on_each_day_can_be_asked(self) -> None:
        with odf_node.open(self._node.home) as node:
            for day, cities in self._taken[-1:] + self._taken[:1]:
                rows = node.table(self._name, as_of=str(day)).state().to_arrow().to_pylist()
                assert {row["city"]: row["people"] for row in rows} == cities
        if self._bad_rows:
            shown = self._node.must("quarantine", "show", self._name, "-n", "1000", "-o", "json").json()
            assert len(shown) == self._bad_rows

    @invariant()
    def the_list_shows_it_as_it_is(self) -> None:
        with odf_node.open(self._node.home) as node:
            found = [(each.name, each.rows) for each in node.datasets()]
        assert found == ([(self._name, len(self._seen_changes))] if self._day else [])

    def _now(self) -> Timestamp:
        return Timestamp(NOON.seconds + 86_400 * self._day)

    def _must(self, *words: str) -> None:
        ran = self._run(*words)
        assert ran.code == 0, f"{words}: {ran.out}{ran.err}"

    def _run(self, *words: str) -> RanCommand:
        self._day += 1
        return self._node.run(*words, "--system-time", str(self._now()))


DatasetLives.TestCase.settings = settings(max_examples=settings().max_examples // 10, stateful_step_count=12)
TestDatasetLives = DatasetLives.TestCase
