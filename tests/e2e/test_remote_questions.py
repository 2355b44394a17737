"""Questions over datasets of other nodes: brought and checked for the question alone (QUERY-12)."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import odf_node
from odf_engines.errors import InvalidQueryError
from odf_node.composition import open_node
from odf_node.errors import UsageError
from odf_node.ports.progress import Silence
from odf_node.remote_names import RemoteName, RemoteQuery, find_remote_names
from odf_node.remote_tables import RemoteTables
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from support.daemons import daemon
from support.nodes import RealNode
from support.offers import Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, slice_table

SLICE = 3
URL = "http://host/cities"


@dataclass(frozen=True)
class Peer:
    """A daemon with the dataset ``cities``, and with ``forged``, which has other rows than its blocks say."""

    url: str
    cities: PeerChain


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder = tmp_path_factory.mktemp("peer")
    publisher = PublisherHome(Judge.create(folder / "home"))
    publisher.keep(cities := root_chain(folder))
    publisher.keep(_forged(root_chain(folder, name="forged", key=bytes(range(32)))))
    with daemon(publisher.judge.home.path) as served:
        yield Peer(served.url, cities)


def _forged(chain: PeerChain) -> PeerChain:
    old = chain.blocks[SLICE].event.new_data  # type: ignore[union-attr]
    content = parquet_bytes(
        slice_table([("Paris", 1), ("Rome", 2), ("Bonn", 3)], first_offset=3, at=chain.blocks[SLICE].system_time)
    )
    data = replace(old, physical_hash=Multihash.of_sha3_256(content), size=len(content))
    forged = chain.replacing(SLICE, lambda event: replace(event, new_data=data))
    forged.files[data.physical_hash] = content
    return forged


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


@contextmanager
def tables_of(node: RealNode, **options: int) -> Iterator[RemoteTables]:
    inner = open_node(node.home)
    try:
        with RemoteTables(inner, **options) as tables:
            yield tables
    finally:
        inner.close()


def bring(tables: RemoteTables, url: str) -> RemoteQuery:
    query_text = f"SELECT * FROM `{url}`"
    return asyncio.run(tables.bring(query_text, engine=None, as_of=None, progress=Silence()))


def listed(node: RealNode) -> list[str]:
    return [each["name"] for each in node.must("list", "-o", "json").json()]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ('SELECT count(*) AS n FROM "{url}/cities"', 6),
        ('SELECT count(*) AS n FROM `{url}/cities` AS c JOIN "{url}/cities__state" AS s ON c.city = s.city', 5),
        ("SELECT count(*) AS n FROM `peer/cities`", 6),
    ],
    ids=["double-quoted", "state-joined", "in-a-repository"],
)
def test_question_over_an_address_is_answered_and_nothing_is_kept(
    node: RealNode, peer: Peer, query: str, rows: int
) -> None:
    node.must("repo", "add", "peer", peer.url)

    asked = node.must("sql", "-o", "json", "-c", query.format(url=peer.url))

    assert asked.json() == [{"n": rows}]
    size = sum(map(len, peer.cities.files.values()))
    assert f"{peer.url}/cities: brought 2 files ({size:,} bytes) for this question alone" in asked.err
    assert "chain, signatures and rows hold" in asked.err
    assert f"'odf-node pull {peer.url}/cities' checks all and keeps it" in asked.err
    assert listed(node) == []
    assert list(node.home.glob("staging/engines/**/asked-*")) == []
    assert [path for path in node.home.glob("objects/**/*") if path.is_file()] == []


@pytest.mark.spark
def test_rows_that_are_not_what_their_block_says_reach_no_engine(node: RealNode, peer: Peer) -> None:
    refused = node.run("sql", "--engine", "datafusion", "-c", f'SELECT * FROM "{peer.url}/forged"')

    assert (refused.code, refused.out) == (4, "")
    assert "ROWS-5" in refused.err
    assert listed(node) == []


def test_policies_of_this_node_hold_by_the_name_that_a_pull_would_give(node: RealNode, peer: Peer) -> None:
    node.must("repo", "add", "peer", peer.url)  # there is a home now
    rule = "{datasets: [cit%], accept: re-executed, firstContact: refuse}"
    (node.home / "policies.yaml").write_text(f"kind: AcceptPolicies\nversion: 1\nrules:\n  - {rule}\n")

    refused = node.run("sql", "-c", f'SELECT * FROM "{peer.url}/cities"')

    assert (refused.code, refused.out) == (4, "")
    assert f"REJECTED: {peer.url}/cities" in refused.err
    assert "firstContact" in refused.err or "first contact" in refused.err
    assert "evidence is kept" not in refused.err
    assert listed(node) == []


def test_dataset_that_is_held_here_answers_itself(node: RealNode, peer: Peer) -> None:
    node.must("pull", f"{peer.url}/cities", "--as", "towns")
    with tables_of(node) as tables:
        for url in (f"{peer.url}/cities", f"{peer.url}/{peer.cities.id}"):
            found = bring(tables, url)
            assert (found.sql, found.tables) == ("SELECT * FROM `towns`", ())
            assert "is 'towns' in this node, which answers as of block 3" in found.notes[0]


def test_name_that_a_question_defines_stands_for_no_dataset_elsewhere(node: RealNode, peer: Peer) -> None:
    url = f"{peer.url}/cities"
    with tables_of(node) as tables:
        query_text = f"WITH Remote_1 AS (SELECT 7 AS n) SELECT * FROM `{url}`, remote_1"
        found = asyncio.run(tables.bring(query_text, engine=None, as_of=None, progress=Silence()))
        (table,) = found.tables
        assert table.name != "remote_1"
        assert found.sql == f"WITH Remote_1 AS (SELECT 7 AS n) SELECT * FROM `{table.name}`, remote_1"
    node.must("pull", url, "--as", "towns")
    with tables_of(node) as tables:
        query_text = f"WITH Towns AS (SELECT 7 AS n) SELECT * FROM `{url}`"
        with pytest.raises(InvalidQueryError, match=r"WITH .*'towns'"):
            asyncio.run(tables.bring(query_text, engine=None, as_of=None, progress=Silence()))


def test_address_with_a_password_is_not_asked_and_not_told(node: RealNode, peer: Peer) -> None:
    with tables_of(node) as tables, pytest.raises(MalformedError, match="no user and password") as refused:
        bring(tables, peer.url.replace("://", "://user:hidden@") + "/cities")
    assert "hidden" not in str(refused.value)


def test_addresses_are_known_where_the_operator_asks_and_nowhere_else() -> None:
    package = Path(odf_node.__file__).parent
    sources = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    users = {name for name, text in sources.items() if "odf_node.remote_tables import" in text}
    assert users == {"cli/asking/asker.py", "front/opening.py"}
    served = [path for each in ("http", "daemon", "exchange") for path in (package / each).rglob("*.py")]
    served += [path for each in ("odf_flight", "odf_gossip") for path in (package.parent / each).rglob("*.py")]
    assert len({path.parent for path in served}) >= 5
    assert not [path for path in served if re.search(r"odf_node\.(front|cli\.asking)", path.read_text())]


def test_dataset_that_is_too_large_is_left_to_a_pull_and_other_schemes_too(node: RealNode, peer: Peer) -> None:
    node.must("list")
    with tables_of(node, max_bytes=100) as tables:
        with pytest.raises(UsageError, match=f"more than the 100 that .*'odf-node pull {peer.url}/cities'"):
            bring(tables, f"{peer.url}/cities")
        with pytest.raises(UsageError, match="'odf-node pull file:///etc/passwd' brings it"):
            bring(tables, "file:///etc/passwd")


@pytest.mark.parametrize(
    ("sql", "engine", "texts"),
    [
        pytest.param(f'SELECT * FROM "{URL}"', "spark", [URL], id="double-quoted"),
        pytest.param(f"SELECT * FROM a JOIN `{URL}`", "spark", [URL], id="back-ticks"),
        pytest.param(f"SELECT `{URL}`.n FROM `{URL}`", "spark", [URL, URL], id="before-a-column"),
        pytest.param(f'SELECT "{URL}" FROM "{URL}"', "spark", [URL], id="a-text-stays-a-text"),
        pytest.param(f'SELECT "{URL}".n FROM "{URL}"', "datafusion", [URL, URL], id="datafusion"),
        pytest.param(f"SELECT * FROM a WHERE b = '{URL}'", "spark", [], id="single-quoted"),
        pytest.param(f'SELECT * FROM a WHERE b = "{URL}"', "spark", [], id="not-behind-from"),
        pytest.param(f'SELECT 1 -- FROM "{URL}"', "spark", [], id="comment"),
        pytest.param("SELECT a/b FROM c", "spark", [], id="division"),
        pytest.param('SELECT * FROM "repo/name"', "spark", ["repo/name"], id="repository"),
        pytest.param(f'SELECT * FROM a WHERE b IS NOT DISTINCT FROM "{URL}"', "spark", [], id="comparison"),
        pytest.param('SELECT extract(year FROM "2024/01/05")', "spark", [], id="part-of-a-date"),
        pytest.param('SELECT trim(BOTH "/" FROM "a/b") FROM c', "spark", [], id="trimmed"),
        pytest.param(f'SELECT extract(day FROM "1/2") FROM "{URL}"', "spark", [URL], id="behind-a-part-of-a-date"),
        pytest.param(f'SELECT (SELECT max(n) FROM "{URL}") FROM a', "spark", [URL], id="inner-question"),
        pytest.param(f'((SELECT 1) UNION SELECT n FROM "{URL}")', "spark", [URL], id="union-in-parentheses"),
        pytest.param(f'SELECT * FROM (a JOIN "{URL}" ON true)', "spark", [URL], id="in-parentheses"),
        pytest.param(f"SELECT '\U0001f600' FROM \"{URL}\"", "spark", [URL], id="behind-long-characters"),
    ],
)
def test_addresses_are_names_where_tables_stand(sql: str, engine: str, texts: list[str]) -> None:
    found = find_remote_names(sql, engine)
    assert [each.text for each in found] == texts
    assert all(isinstance(each, RemoteName) and sql[each.start + 1 : each.end - 1] == each.text for each in found)


def test_quote_that_does_not_end_is_no_question() -> None:
    with pytest.raises(InvalidQueryError, match="does not end"):
        find_remote_names(f'SELECT "{URL}" FROM "{URL}" WHERE a = \'', "spark")
