"""Notices of new blocks: who is told what, once, signed so that a receiver can verify it, and nobody waits (NOTICE)."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration, ConfigurationError, parse_configuration
from odf_node.configuration.declaration import Notice
from odf_node.daemon.background_notices import BackgroundNotices
from odf_node.exchange.notices import MAX_ATTEMPTS, NOTES_FILE, NoticeRegistry, read_registry, write_registry
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import Live
from odf_node.ports.notices import Told
from odf_protocol.did import DidKey
from odf_protocol.head import Head
from support.nodes import RealNode
from support.notice_receiver import receiving
from support.store_values import object_hash
from unit.test_reports import RECORD

SPEC = Path(__file__).parents[3] / "spec" / "notices.md"
MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "people BIGINT"]}}
      merge: {{kind: Append}}
"""


def verifier() -> Callable[..., None]:
    """The function that the specification gives to receivers."""
    (code,) = re.findall(r"```python\n(.*?)```", SPEC.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[..., None] = names["verify"]
    return found


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    made = RealNode(tmp_path / "home")
    add(made, "old")
    return made


def add(node: RealNode, name: str) -> None:
    path = node.home.with_name(f"{name}.yaml")
    path.write_text(MANIFEST.format(name=name))
    node.must("add", str(path))


@contextmanager
def telling(node: RealNode, *notices: Notice) -> Iterator[Live]:
    live, home = Live(Configuration(notice=notices)), HomeFolder(node.home)
    with closing(Node(home, SystemClock())) as opened:
        background = BackgroundNotices(opened, live, look_each_s=0.02)
        background.start()
        try:
            wait_for(lambda: len(json.loads((home.cache / NOTES_FILE).read_text())) == len(notices), OSError)
            yield live
        finally:
            background.end()


def wait_for(find: Callable[[], bool], *waits: type[Exception]) -> None:
    give_up_s = time.monotonic() + 30
    while True:
        try:
            if find():
                return
        except waits:
            pass
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def node_id(node: RealNode) -> str:
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        return str(DidKey(opened.keys.get_or_create_node_key().public_key()))


def test_receiver_hears_of_new_blocks_and_verifies_them_as_the_specification_says(
    node: RealNode, tmp_path: Path
) -> None:
    verify = verifier()
    with receiving() as server, telling(node, server.notice("/hook/secret-word?x=1", "n% old")) as live:
        add(node, "unnamed")
        add(node, "new")
        wait_for(lambda: len(server.got) == 1)
        (tmp_path / "rows.csv").write_text("event_time,people\n2020-01-01T00:00:00Z,1\n2020-01-02T00:00:00Z,2\n")
        node.must("ingest", "new", str(tmp_path / "rows.csv"))
        wait_for(lambda: len(server.got) == 2)
        added, ingested = server.bodies
        assert (added["dataset"], added["oldHead"], added["newRows"]) == ("new", None, 0)
        assert ingested.keys() == {"kind", "node", "dataset", "id", "oldHead", "newHead", "newBlocks", "newRows", "at"}
        assert (ingested["oldHead"], ingested["newRows"]) == (added["newHead"], 2)
        (listed,) = [each for each in node.must("list", "-o", "json").json() if each["name"] == "new"]
        assert listed["id"] == ingested["id"]
        expected = node_id(node)
        assert ingested["node"] == expected
        for path, headers, body in server.got:
            place, _, query = path.partition("?")
            asked = expected, server.authority, place, query, headers, body
            for wrong, value in ((1, "other.example"), (2, "/other"), (3, ""), (5, body + b" ")):
                changed = [*asked]
                changed[wrong] = value
                with pytest.raises(Exception):  # noqa: B017, PT011 - of the library, or a ValueError
                    verify(*changed)
            verify(*asked)
            with pytest.raises(ValueError, match="sent before"):
                verify(*asked)
            with pytest.raises(ValueError, match="signed by another"):
                verify(str(DidKey(b"\1" * 32)), *asked[1:])
        assert 'odf_node_notices_total{result="done"} 2.0' in live.metrics.render()


def test_what_came_while_the_daemon_did_not_run_is_told_by_the_next_one_as_one_notice(node: RealNode) -> None:
    with receiving() as server:
        with telling(node, server.notice()):
            pass
        node.must("pull", "old", "--set-watermark", "2020-01-01T00:00:00Z")
        node.must("pull", "old", "--set-watermark", "2020-01-02T00:00:00Z")
        with telling(node, server.notice()) as live:
            # What had arrived when the process ended, and was not taken down, would be told again.
            wait_for(lambda: 'odf_node_notices_total{result="done"} 1.0' in live.metrics.render())
        (reported,) = server.bodies
        assert (reported["dataset"], reported["newBlocks"], reported["newRows"]) == ("old", 2, 0)
        with telling(node, server.notice()):
            time.sleep(0.2)  # some looks; what was told is not told again
        assert len(server.got) == 1


def test_redirect_is_not_followed_and_told_once(node: RealNode, caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as elsewhere, receiving() as server:
        server.statuses, server.location = [302], f"http://{elsewhere.authority}/there"
        with telling(node, server.notice("/secret-word")) as live:
            add(node, "new")
            wait_for(lambda: 'odf_node_notices_total{result="refused"} 1.0' in live.metrics.render())
            time.sleep(0.2)  # some looks
        assert (len(server.got), elsewhere.got) == (1, [])
        (line,) = [each.getMessage() for each in caplog.records if '"notice"' in each.getMessage()]
        assert "redirects are not followed" in line
        assert "secret-word" not in line
        assert server.authority in line


def test_receiver_that_hangs_holds_up_neither_commits_nor_others_nor_the_end(node: RealNode) -> None:
    with receiving() as hanging, receiving() as server:
        hanging.hangs.set()
        with telling(node, hanging.notice(), server.notice()):
            add(node, "new")
            wait_for(lambda: bool(server.got and hanging.got))
            began_s = time.monotonic()
            add(node, "newer")
        assert time.monotonic() - began_s < 9, "not the ten seconds that a receiver has"
        # It was never taken, so the next daemon tells it.
        hanging.released.set()
        hanging.hangs.clear()
        with telling(node, hanging.notice(), server.notice()):
            wait_for(lambda: {each["dataset"] for each in hanging.bodies[1:]} == {"new", "newer"})


FIRST, SECOND = RECORD.head, Head(RECORD.head.sequence_number + 1, object_hash(9))
NOTICE = Notice(url="http://a.example/x", datasets="%")


def grown() -> Any:
    return replace(RECORD, head=SECOND)


def board_with_news() -> NoticeRegistry:
    registry = NoticeRegistry()
    registry.renew([NOTICE], [RECORD])
    assert registry.list_due([RECORD], 0.0) == {}
    return registry


def test_unavailable_is_told_later_and_later_and_dropped_at_last() -> None:
    registry, now_s, waits = board_with_news(), 0.0, []
    for attempt in range(MAX_ATTEMPTS):
        (waiting,) = registry.list_due([grown()], now_s)[NOTICE]
        assert waiting.old == FIRST
        reported = registry.settle(NOTICE, waiting, Told.UNAVAILABLE, now_s)
        assert reported is (Told.DROPPED if attempt == MAX_ATTEMPTS - 1 else Told.UNAVAILABLE)
        if reported is Told.UNAVAILABLE:
            began_s = now_s
            assert registry.list_due([grown()], now_s) == {}
            while not registry.list_due([grown()], now_s):
                now_s += 5
            waits.append(now_s - began_s)
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert registry.list_due([grown()], now_s + 10**6) == {}


def test_what_is_rejected_is_not_told_again_and_taken_begins_anew() -> None:
    for reported in (Told.REJECTED, Told.DONE):
        registry = board_with_news()
        (waiting,) = registry.list_due([grown()], 0.0)[NOTICE]
        registry.settle(NOTICE, waiting, Told.UNAVAILABLE, 0.0)
        (waiting,) = registry.list_due([grown()], 5.0)[NOTICE]
        assert registry.settle(NOTICE, waiting, reported, 5.0) is reported
        assert registry.list_due([grown()], 5.0) == {}
        assert registry.count_waiting([RECORD]) == 1, "a history that was replaced is news"


def test_dataset_that_is_deleted_is_forgotten_and_new_when_it_comes_again() -> None:
    registry = board_with_news()
    registry.renew([NOTICE], [])
    registry.renew([NOTICE], [RECORD])
    (waiting,) = registry.list_due([RECORD], 0.0)[NOTICE]
    assert waiting.old is None


def test_board_is_read_as_it_was_written_and_damage_is_none(tmp_path: Path) -> None:
    registry = board_with_news()
    write_registry(tmp_path, registry)
    assert (tmp_path / NOTES_FILE).stat().st_mode & 0o077 == 0
    again = read_registry(tmp_path)
    assert {key: place.heads for key, place in again.places.items()} == {NOTICE: {RECORD.id: FIRST}}
    for text in ("", "[", "[1]", '[{"url": 1}]', '[{"url": "x", "datasets": "%", "heads": {"x": [1, "y"]}}]'):
        (tmp_path / NOTES_FILE).write_text(text)
        assert read_registry(tmp_path) == NoticeRegistry()
    assert read_registry(tmp_path / "nowhere") == NoticeRegistry()


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ('url = "http://a.example"', "notice.datasets"),
        ('datasets = "a"', "notice.url: expected an http or https address"),
        ('datasets = "a"\nurl = "ftp://a.example"', "notice.url: expected an http or https address"),
        ('datasets = "a"\nurl = "http://[half"', "notice.url: expected an http or https address"),
        ('datasets = "a"\nurl = "https://me:word@a.example"', "without user, password and fragment"),
        ('datasets = "a"\nurl = "https://a.example#x"', "without user, password and fragment"),
        ('datasets = "a"\nurll = "https://a.example"', "unknown setting"),
    ],
)
def test_notice_that_cannot_be_sent_is_rejected_with_its_place(text: str, stated: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(f"[[notice]]\n{text}\n", source_name="odf-node.toml", environment={})
    assert stated in str(refused.value)
    assert "me:word" not in str(refused.value)
    good = parse_configuration(
        '[[notice]]\ndatasets = "a"\nurl = "https://a.example/x?y"\n', source_name="x", environment={}
    )
    assert good.notice == (Notice(datasets="a", url="https://a.example/x?y"),)
