"""Real commands killed with SIGKILL in the middle: the next command finds the old state or the new one, and cleans up.

The moment of a kill is not a time but a sign on the disk that a step has been reached.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_engines.sandbox.resources import _tree
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import QUEUE_PREFIX, HomeFolder
from odf_node.store import MetadataStore
from odf_protocol.head import Head
from support.command_line import are_gone
from support.nodes import SECOND_ROWS, Publisher, RealNode, make_publisher
from support.warm_engine import lent_to_untrusted

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

APPEAR_S = 400.0
GONE_S = 240.0
THIRD_ROWS = SECOND_ROWS.replace("717710", "720000")
PUSH_MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: readings
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {name: event_time, type: {kind: Option, inner: {kind: Timestamp}}}
            - {name: value, type: {kind: Option, inner: Int64}}
      merge: {kind: Ledger, primaryKey: [value]}
"""

Sign = Callable[[HomeFolder], bool]
Heads = dict[str, Head]


def request_in_engine(home: HomeFolder) -> bool:
    """An engine has been given a request."""
    return any(home.engines.glob("process-*/*/in/*"))


def objects_more_than(count: int) -> Sign:
    """New objects are in place, which nothing names yet."""
    return lambda home: sum(1 for _ in home.objects.glob("*/*")) > count


def heads_other_than(old: Heads) -> Sign:
    """A first dataset is committed; the next one takes longer than the pause."""

    def are_other(home: HomeFolder) -> bool:
        time.sleep(0.02)  # opening a database over and over takes a processor
        return heads(home) != old

    return are_other


def heads(home: HomeFolder) -> Heads:
    """Read the heads as any other process would."""
    with closing(MetadataStore(home)) as store:
        return {record.name: record.head for record in store.list_datasets()}


@dataclass(frozen=True)
class Stage:
    """A publisher whose source has changed, copied for each kill; what its commands come to when nobody kills them."""

    folder: Path
    publisher: Publisher
    old: Heads
    new: Heads

    @property
    def pull(self) -> list[str]:
        return ["pull", "cities", "large.cities", "--system-time", "2024-01-04T12:00:00Z"]

    @property
    def ingest(self) -> list[str]:
        return ["ingest", "readings", str(self.folder / "readings.ndjson"), "--system-time", "2024-01-05T12:00:00Z"]

    @property
    def environment(self) -> dict[str, str]:
        return {"CITIES": self.publisher.source.as_uri()}

    def copy(self, folder: Path) -> RealNode:
        shutil.copytree(self.folder / "before", folder)
        return RealNode(folder, has_engine=True)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("stage")
    publisher = make_publisher(folder, steps=1, has_engine=True)
    node = publisher.node
    (folder / "push.yaml").write_text(PUSH_MANIFEST, encoding="utf-8")
    (folder / "readings.ndjson").write_text('{"event_time": "2024-01-01T00:00:00Z", "value": 1}\n', encoding="utf-8")
    node.must("add", str(folder / "push.yaml"), "--system-time", "2024-01-01T12:00:00Z")
    shutil.copytree(node.home, folder / "before", ignore=shutil.ignore_patterns("engines"))
    old = heads(HomeFolder(node.home))
    publisher.source.write_text(f"event_time,city,people\n{THIRD_ROWS}", encoding="utf-8")
    stage = Stage(folder, publisher, old, {})
    node.must(*stage.pull, environment=stage.environment)
    node.must(*stage.ingest)
    return Stage(folder, publisher, old, heads(HomeFolder(node.home)))


def kill_at(node: RealNode, words: list[str], sign: Sign, environment: dict[str, str]) -> None:
    """Run a command, kill it as soon as ``sign`` is seen, and see every process of it end."""
    command = subprocess.Popen(
        [sys.executable, "-m", "odf_node", *words, "--home", str(node.home)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    )
    home = HomeFolder(node.home)
    give_up_at = time.monotonic() + APPEAR_S
    while not sign(home):
        if command.poll() is not None:
            assert command.stderr is not None
            raise AssertionError(f"it ended before: {command.stderr.read().decode()}")
        assert time.monotonic() < give_up_at
        time.sleep(0.002)
    processes = list(_tree(command.pid))
    command.send_signal(signal.SIGKILL)
    command.communicate()
    give_up_at = time.monotonic() + GONE_S
    while not are_gone(set(processes)):
        assert time.monotonic() < give_up_at, [pid for pid in processes if not are_gone({pid})]
        time.sleep(0.01)


def assert_clean(node: RealNode) -> None:
    """Nothing is left of the killed command."""
    home = HomeFolder(node.home)
    objects = ObjectFolder(home)
    with closing(MetadataStore(home)) as store:
        assert set(objects.iter_hashes()) == set(store.list_referenced_objects())
    for object_hash in objects.iter_hashes():
        objects.check(object_hash)
    staged = [path for path in home.staging.iterdir() if path not in {home.downloads, home.engines}]
    assert [path.name for path in staged if not path.name.startswith(QUEUE_PREFIX)] == []
    assert list(home.downloads.iterdir()) == []
    assert list(home.engines.glob("process-*")) == []


def test_pull_of_root_and_derivative_that_is_killed_twice_is_repeated_to_the_same_heads(
    stage: Stage, tmp_path: Path
) -> None:
    node = stage.copy(tmp_path / "home")

    kill_at(node, stage.pull, request_in_engine, stage.environment)
    assert heads(HomeFolder(node.home)) == stage.old
    kill_at(node, stage.pull, heads_other_than(stage.old), stage.environment)

    found = heads(HomeFolder(node.home))
    assert found["cities"] == stage.new["cities"]
    assert all(found[name] in (stage.old[name], stage.new[name]) for name in stage.old)
    node.must(*stage.pull, environment=stage.environment)
    after = heads(HomeFolder(node.home))
    assert {name: after[name] for name in ("cities", "large.cities")} == {
        name: stage.new[name] for name in ("cities", "large.cities")
    }
    assert_clean(node)


def test_killed_ingest_is_repeated_to_the_same_head(stage: Stage, tmp_path: Path) -> None:
    node = stage.copy(tmp_path / "home")
    before = sum(1 for _ in HomeFolder(node.home).objects.glob("*/*"))

    kill_at(node, stage.ingest, objects_more_than(before), stage.environment)

    assert heads(HomeFolder(node.home))["readings"] in (stage.old["readings"], stage.new["readings"])
    node.must(*stage.ingest, environment=stage.environment)
    assert heads(HomeFolder(node.home))["readings"] == stage.new["readings"]
    assert_clean(node)


def kill_before_commit(node: RealNode, words: list[str], sign: Sign, whole: Heads) -> None:
    """Kill a command between ``sign`` and its commit; where the commit was quicker, it is whole, and tried again."""
    before, kept = heads(HomeFolder(node.home)), node.home.with_name("kept")
    for _ in range(5):
        shutil.copytree(node.home, kept)
        kill_at(node, words, sign, {})
        if heads(HomeFolder(node.home)) == before:
            shutil.rmtree(kept)
            return
        assert heads(HomeFolder(node.home)) == whole
        shutil.rmtree(node.home)
        kept.rename(node.home)
    raise AssertionError("it was committed each time before it could be killed")


def test_pull_from_a_peer_that_is_killed_twice_is_repeated_to_an_accepted_copy(stage: Stage, tmp_path: Path) -> None:
    reader = RealNode(tmp_path / "reader")
    whole = {name: stage.new[name] for name in ("cities", "large.cities")}
    with stage.publisher.node.serving() as address:
        reader.must("pull", f"{address}/cities")
        before = heads(HomeFolder(reader.home))
        count = sum(1 for _ in HomeFolder(reader.home).objects.glob("*/*"))
        words = ["pull", f"{address}/large.cities"]

        for sign in (objects_more_than(count), request_in_engine):
            kill_before_commit(reader, words, sign, whole)
            # Not a single block is visible before all of it was judged.
            assert heads(HomeFolder(reader.home)) == before
        with lent_to_untrusted():
            reader.must(*words)
    assert heads(HomeFolder(reader.home)) == whole
    assert reader.must("inspect", "trust", "large.cities", "-o", "json").json()["trust"] == "re-executed"
    assert_clean(reader)
