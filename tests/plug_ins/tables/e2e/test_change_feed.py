"""The changes of a dataset over HTTP, by a real daemon (TABLE-15)."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import odf_node
from support.nodes import RealNode

ARROW = "application/vnd.apache.arrow.stream"


@dataclass
class Feed:
    home: Path
    url: str
    tokens: tuple[str, str]

    def ask(
        self, path: str, *, token: str | None = None, method: str = "GET", accept: str = ""
    ) -> tuple[int, Message, bytes]:
        headers = {"Accept": accept} if accept else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"{self.url}{path}", headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def rows(self, path: str, **options: Any) -> list[tuple[Any, ...]]:
        status, _, body = self.ask(path, **options)
        assert status == 200, body
        lines = [json.loads(line) for line in body.splitlines()]
        return [(each["_change_type"], each["_commit_version"], each["id"]) for each in lines]


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Feed]:
    node = RealNode(tmp_path_factory.mktemp("feed") / "home")
    with odf_node.open(node.home) as opened:
        for name in ("prices", "hidden"):
            table = opened.create_table(name, "id BIGINT, price DOUBLE", key=["id"])
            table.insert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}))
            table.upsert([{"id": 2, "price": 2.5}])
    node.must("publish", "prices")
    node.must("publish", "hidden", "--off")
    one, other = (node.must("token", "create", each, "--dataset", "prices", "-o", "json").json() for each in "ab")
    with node.serving() as url:
        yield Feed(node.home, url, (one["token"], other["token"]))


def test_changes_are_lines_of_json_that_go_on_behind_the_last(feed: Feed) -> None:
    status, headers, _ = feed.ask("/prices/changes")

    assert (status, headers["odf-since"], headers["odf-until"]) == (200, "-1", "4")
    assert feed.rows("/prices/changes?since=3") == [("update_preimage", 4, 2), ("update_postimage", 4, 2)]
    assert feed.rows("/prices/changes?until=3") == [("insert", 3, 1), ("insert", 3, 2)]
    assert feed.rows("/prices/changes?since=4") == []


def test_changes_are_arrow_where_it_is_asked_for(feed: Feed) -> None:
    status, headers, body = feed.ask("/prices/changes?since=3", accept=ARROW)

    assert (status, headers["Content-Type"]) == (200, ARROW)
    with pa.ipc.open_stream(body) as stream, odf_node.open(feed.home) as node:
        assert stream.read_all().equals(node.table("prices").changes(3).arrow)


@pytest.mark.parametrize("query", ["since=99", "since=-2", "since=x", "since=4&until=3", "other=1", "since=1&since=2"])
def test_what_cannot_be_asked_is_an_error_of_the_caller(feed: Feed, query: str) -> None:
    status, _, body = feed.ask(f"/prices/changes?{query}")

    assert status in {400, 422}, body


def test_hidden_dataset_and_missing_one_are_alike(feed: Feed) -> None:
    hidden, missing = (feed.ask(f"/{name}/changes") for name in ("hidden", "no.such"))

    assert hidden[0] == missing[0] == 404
    assert json.loads(hidden[2])["detail"] == json.loads(missing[2])["detail"]


def test_consumer_is_remembered_by_its_token(feed: Feed) -> None:
    one, other = feed.tokens
    path = "/prices/changes?consumer=report"
    assert feed.ask(path)[0] == 401
    assert feed.ask("/prices/changes/commit?consumer=report&since=-1&until=4", method="POST")[0] == 401

    first = feed.rows(path, token=one)
    with odf_node.open(feed.home) as node:
        node.table("prices").upsert([{"id": 9, "price": 9.0}])
    assert feed.rows(path, token=one) == first
    assert len(first) == 4
    commit = "/prices/changes/commit?consumer=report&since=-1&until=4"
    assert [feed.ask(commit, token=one, method="POST")[0] for _ in "ab"] == [204, 204]
    assert feed.rows(path, token=one) == [("insert", 5, 9)]
    assert len(feed.rows(path, token=other)) == 5
    assert feed.ask("/prices/changes/commit?consumer=report&since=0&until=2", token=one, method="POST")[0] == 409


@pytest.mark.parametrize(
    "query",
    ["consumer=../x&since=-1&until=4", "consumer=report&since=-1&until=99", "consumer=report", "since=1&until=2"],
)
def test_position_that_is_none_is_not_noted(feed: Feed, query: str) -> None:
    assert feed.ask(f"/prices/changes/commit?{query}", token=feed.tokens[0], method="POST")[0] == 400


@pytest.mark.parametrize("name", ["", "..", "-x", "../x", "a%2Fb", "a" * 101, "x%00", "%C3%A9"])
def test_name_that_is_none_is_no_consumer_of_a_token(feed: Feed, name: str) -> None:
    assert feed.ask(f"/prices/changes?consumer={name}", token=feed.tokens[1])[0] == 400


def test_consumer_says_no_versions_of_its_own(feed: Feed) -> None:
    assert feed.ask("/prices/changes?consumer=own&since=2", token=feed.tokens[1])[0] == 400


def test_what_was_not_handed_out_is_not_committed_and_leaves_no_file(feed: Feed) -> None:
    def commit(name: str, until: int) -> int:
        path = f"/prices/changes/commit?consumer={name}&since=-1&until={until}"
        return feed.ask(path, token=feed.tokens[1], method="POST")[0]

    files = sorted(feed.home.joinpath("consumers").rglob("*"))
    assert [commit(f"never{number}", 4) for number in range(3)] == [409] * 3
    assert sorted(feed.home.joinpath("consumers").rglob("*")) == files

    _, headers, _ = feed.ask("/prices/changes?consumer=handed", token=feed.tokens[1])
    until = int(headers["odf-until"])
    assert [commit("handed", until - 1), commit("handed", until)] == [409, 204]


@pytest.mark.parametrize(
    "query", ["since=-2", "since=99", f"since={2**63}", f"until={2**127}", "since=1e3", "since=%2B1", "since=%D9%A1"]
)
def test_versions_far_out_are_an_error_of_the_caller(feed: Feed, query: str) -> None:
    assert feed.ask(f"/prices/changes?{query}")[0] == 400
