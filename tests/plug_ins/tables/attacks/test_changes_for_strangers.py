"""Programs that follow the changes of a table over HTTP, and choose names, numbers, headers and what they leave out.

Source: clauses TABLE-12 and TABLE-15 in ``spec/plug-ins/tables.md``; EX-3 in ``spec/extensions/exchange.md``.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import odf_node
from odf_node.composition import Node, open_node
from odf_node.http.callers import secret_hash_of
from odf_node.records.access import AccessToken
from odf_node.records.errors import TooManyWaitingError
from odf_protocol.timestamp import Timestamp
from odf_tables import route
from odf_tables.changes import VersionChanges
from odf_tables.queries import Relations
from support.event_loop import in_loop
from support.secretive_node import Answer, SecretiveNode

ONE, OTHER, OTHERS_TOKEN = "odf_one_0123456789abcdef", "odf_two_0123456789abcdef", "odf_pus_0123456789abcdef"
ARROW = "application/vnd.apache.arrow.stream"
SHOWN, HIDDEN = "/prices/changes", "/hidden/changes"


@dataclass
class Tables:
    """A node with ``prices`` (versions with rows: 3, 4, 5), a hidden twin, and tables of odd columns."""

    node: Node
    path: Path

    def served(self) -> Any:
        return SecretiveNode(self.node, None, None).served()  # type: ignore[arg-type]

    def positions(self) -> dict[str, bytes]:
        found = self.node.home.folder.consumers.rglob("*")
        return {str(each): each.read_bytes() for each in found if each.suffix != ".lock" and each.is_file()}


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    home = tmp_path / "home"
    with odf_node.open(home) as opened:
        for name in ("prices", "hidden"):
            table = opened.create_table(name, "id BIGINT, price DOUBLE", key=["id"])
            table.insert(pa.table({"id": [1, 2], "price": [1.0, float("nan")]}))
            table.upsert([{"id": 2, "price": float("inf")}])
            table.insert([{"id": 3, "price": -0.0}])
        odd = opened.create_table("odd", pa.schema({'a"\n\x1b[2J': pa.string(), "<b>": pa.binary(), "c": pa.int64()}))
        odd.insert(pa.table({'a"\n\x1b[2J': ["\x1b[31m\n\r\x00\u202e"], "<b>": [b"\xff\n"], "c": [2**63 - 1]}))
        taken = opened.create_table("taken", pa.schema({"_change_type": pa.string()}))
        taken.insert(pa.table({"_change_type": ["x"]}))
    node = open_node(home)
    with closing(node):
        for record in node.store.list_datasets():
            node.store.set_published(record.id, record.name != "hidden")
        prices = next(each for each in node.store.list_datasets() if each.name == "prices")
        odd = next(each for each in node.store.list_datasets() if each.name == "odd")
        scopes = ((ONE, f"read:{prices.id}"), (OTHER, f"read:{prices.id}"), (OTHERS_TOKEN, f"push:{odd.id}"))
        for secret, scope in scopes:
            node.store.put_token(
                AccessToken(
                    id=secret[4:7],
                    secret_hash=secret_hash_of(secret),
                    label="",
                    scopes=(scope,),
                    created_at=Timestamp.parse("2024-01-01T00:00:00Z"),
                )
            )
        yield Tables(node, home)


def without_id(answer: Answer) -> Any:
    return answer.status, json.loads(answer.body)["detail"], sorted(answer.headers)


NUMBERS = (
    "since=-2", "since=-999999999999999999", "since=9999999999999999999", "since=%2B1", "since=%201", "since=1e1",
    "since=0x1", "since=%D9%A1", "since=1.0", "since=", "since=NaN", "since=1&since=1", "since=1&Since=2",
    "until=-1", "until=6", "until=999999999999999999", "since=5&until=4", "since=1%00", "until=1;since=2",
    "consumer=a&since=1", "consumer=a&until=1", "consumer=a&consumer=b", "x", "%00", "consumer%00=a",
)  # fmt: skip


@in_loop
async def test_numbers_that_are_none_are_errors_of_the_caller_table_15(tables: Tables) -> None:
    async with tables.served() as stranger:
        one = replace(stranger, token=ONE)
        answers = {each: await one.ask("GET", f"{SHOWN}?{each}") for each in NUMBERS}
        assert {each: got.status for each, got in answers.items() if got.status not in {400, 422}} == {}
        assert tables.positions() == {}


NAMES = (
    "", ".", "..", "../x", "a/b", "a%2Fb", "a%00", "a%0Ab", "-a", "_a", "%C3%A9", "a%20b", "a" * 101, "%2e%2e%2fkeys",
    "a\\b", "~", "$HOME", "*", "a?b", "a#b", "\u202ea", "CON:", "a%0d%0aX-Header:%201",
)  # fmt: skip


@in_loop
async def test_names_of_consumers_leave_no_folder_table_12(tables: Tables) -> None:
    async with tables.served() as stranger:
        one = replace(stranger, token=ONE)
        for each in NAMES:
            if "#" not in each and "\u202e" not in each:
                got = await one.ask("GET", f"{SHOWN}?consumer={each}")
                assert got.status == 400, each
                assert "X-Header" not in got.headers
                got = await one.ask("POST", f"{SHOWN}/commit?consumer={each}&since=-1&until=3")
                assert got.status == 400, each
        assert tables.positions() == {}
        assert not [each for each in tables.path.parent.iterdir() if each.name != "home"]


@in_loop
async def test_position_of_another_is_neither_read_nor_moved_table_15(tables: Tables) -> None:
    async with tables.served() as stranger:
        one, other, pusher = (replace(stranger, token=each) for each in (ONE, OTHER, OTHERS_TOKEN))
        first = await one.ask("GET", f"{SHOWN}?consumer=x")
        kept = tables.positions()
        assert len(kept) == 1
        (held,) = kept
        own = Path(held).stem
        commit = f"{SHOWN}/commit?consumer=x&since=-1&until={first.headers['odf-until']}"
        for thief in (other, pusher, replace(stranger, token=None), replace(stranger, token=ONE + "x")):
            for name in ("x", own, own.upper()):
                told = await thief.ask("POST", commit.replace("=x&", f"={name}&"))
                assert told.status in {401, 404, 409}, (thief.token, name)
        for since, until in ((-1, 3), (-1, 4), (0, 5), (3, 5), (5, 5), (-1, 999), (-2, 5), (4, 3)):
            told = await one.ask("POST", f"{SHOWN}/commit?consumer=x&since={since}&until={until}")
            assert told.status in ({204} if (since, until) == (-1, 5) else {400, 409}), (since, until)
        assert tables.positions() == kept
        assert (await one.ask("GET", commit)).status in {404, 405}
        assert (await one.ask("POST", commit)).status == 204


@in_loop
async def test_hidden_table_is_as_one_that_is_not_there_ex_3(tables: Tables) -> None:
    async with tables.served() as stranger:
        for token in (None, ONE, OTHERS_TOKEN, "odf_no_such"):
            asker = replace(stranger, token=token)
            for query in ("", "?since=1", "?since=x", "?consumer=a", "?consumer=..", "?other=1"):
                for method, path in (("GET", "/changes"), ("HEAD", "/changes"), ("POST", "/changes/commit")):
                    hidden, absent = [await asker.ask(method, f"/{name}{path}{query}") for name in ("hidden", "absent")]
                    if method == "HEAD":
                        assert (hidden.status, hidden.headers) == (absent.status, absent.headers)
                    else:
                        assert without_id(hidden) == without_id(absent), (token, query, method)
                    assert hidden.status in {401, 404}


@in_loop
async def test_what_rows_hold_stays_one_line_of_json_table_15(tables: Tables) -> None:
    async with tables.served() as stranger:
        asker = replace(stranger, token=None)
        odd = await asker.ask("GET", "/odd/changes")
        (line,) = odd.body.splitlines()
        assert json.loads(line)["c"] == 2**63 - 1
        assert b"\x1b" not in odd.body
        prices = (await asker.ask("GET", SHOWN)).body.decode()
        assert [json.loads(each, parse_constant=lambda _: pytest.fail("no JSON")) for each in prices.splitlines()]
        taken = await asker.ask("GET", "/taken/changes")
        assert (taken.status, "_change_type" in taken.json()["detail"]) == (400, True)
        for accept in ("x" * 4_000, f"{ARROW};q=0", "*/*", f"text/html, {ARROW}", "\xff"):
            assert (await asker.ask("GET", SHOWN, Accept=accept)).status == 200
        for headers in ({"Range": "bytes=0-3"}, {"If-None-Match": "*"}, {"If-Match": '"x"'}, {"Content-Length": "0"}):
            assert (await asker.ask("GET", SHOWN, **headers)).body.decode() == prices
        head = await asker.ask("HEAD", SHOWN)
        assert (head.status, head.body) == (200, b"")


@in_loop
async def test_consumers_of_a_token_are_bounded_whoever_asks_at_once_table_15(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "MAX_CONSUMERS", 3)
    async with tables.served() as stranger:
        one = replace(stranger, token=ONE)
        answers = [await one.ask("GET", f"{SHOWN}?consumer=c{number}") for number in range(6)]
        assert [each.status for each in answers] == [200] * 3 + [400] * 3
        asked = [one.ask("GET", f"{SHOWN}?consumer=c1") for _ in range(8)]
        answers = await asyncio.gather(*asked)
        assert {(each.status, each.body) for each in answers} == {(200, answers[0].body)}


@in_loop
async def test_answer_ends_where_rows_unpack_to_too_much_table_15(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice of 125 kB, the same text in each row, made an answer of 949 MB on this node's disk for each who asked."""
    monkeypatch.setattr(route, "MAX_BYTES", 800)
    monkeypatch.setattr(route, "MAX_UNPACKED", 0)
    with odf_node.open(tables.path) as opened:
        opened.table("odd").insert(pa.table({'a"\n\x1b[2J': ["x" * 5_000], "<b>": [b""], "c": [1]}))
    async with tables.served() as stranger:
        one = replace(stranger, token=ONE)
        for accept in (ARROW, "*/*"):
            until, rows = -1, 0
            for _ in range(5):
                asked = stranger.session.get(f"{stranger.url}{SHOWN}?since={until}", headers={"Accept": accept})
                async with asked as part:
                    body = await part.read()
                assert (part.status, int(part.headers["odf-since"])) == (200, until)
                until = int(part.headers["odf-until"])
                rows += pa.ipc.open_stream(body).read_all().num_rows if accept == ARROW else body.count(b"\n")
            assert (until, rows) == (5, 5)
        # What was handed out in one form comes again in the other, and is the same.
        first = await one.ask("GET", f"{SHOWN}?consumer=x", Accept=ARROW)
        again = await one.ask("GET", f"{SHOWN}?consumer=x")
        assert first.headers["odf-until"] == again.headers["odf-until"]
        large = await one.ask("GET", "/odd/changes?since=3")
        assert large.status == 422
        assert "since=4" in large.json()["detail"]
        assert not [*(tables.path / "staging").rglob("tmp*")]


@in_loop
async def test_answers_that_are_read_slowly_do_not_fill_the_disk_table_15(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "MAX_HELD_BYTES", 2_000)
    answers = route.ChangeAnswers(tables.node)
    with answers.holding("address:203.0.113.7", 600), answers.holding("token:abc", 900):
        answers.require_room("token:abc")
        with answers.holding("token:abc", 200), pytest.raises(TooManyWaitingError):
            answers.require_room("token:abc")
        with answers.holding("address:203.0.113.7", 600), pytest.raises(TooManyWaitingError):
            answers.require_room("address:198.51.100.9")
        answers.require_room("address:198.51.100.9")
    assert not answers.held

    monkeypatch.setattr(route, "MAX_HELD_BYTES", 0)
    async with tables.served() as stranger:
        busy = await stranger.ask("GET", SHOWN)
        assert (busy.status, "Retry-After" in busy.headers) == (503, True)


def test_answer_that_ends_before_the_first_rows_is_a_stream_without_rows(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TABLE-15: versions without rows are left behind, and the large one behind them is asked for next."""
    monkeypatch.setattr(route, "MAX_UNPACKED", 0)
    record = next(each for each in tables.node.store.list_datasets() if each.name == "prices")
    changes = VersionChanges(Relations(tables.node, record, brings=False))
    with tempfile.TemporaryFile() as file:
        until = route._write(changes, -1, 5, file, is_arrow=True, max_bytes=1)
        file.seek(0)
        answer = pa.ipc.open_stream(file).read_all()
    assert (until, answer.num_rows) == (2, 0)
    assert answer.schema == changes.get_schema()
