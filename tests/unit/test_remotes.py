"""Repositories, aliases, and finding the inputs of what is pulled."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web

from odf_node.acceptance.offers import AcceptanceReport
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.layout_places import find_layout_target
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.pulling import PullOptions
from odf_node.exchange.remotes import UnknownRepositoryError
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.records.datasets import ADDRESS_SCHEMES, RemoteDirection
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import DatasetKind, Seed
from odf_protocol.policy import Policy, Trust
from support.exchange_nodes import TestNode
from support.http_server import serving
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY, NODE_KEY

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with closing(Node(HomeFolder(tmp_path / "reader"), FixedClock(NOW))) as node:
        yield node


@pytest.fixture
def publisher(tmp_path: Path) -> PublisherHome:
    return PublisherHome(Judge.create(tmp_path / "publisher"))


def export_all(publisher: PublisherHome, folder: Path) -> None:
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        for record in node.store.list_datasets():
            target = find_layout_target(str(folder / record.name), record.name)
            assert target is not None
            asyncio.run(node.exporting.export(record, target, Silence()))


def derive(publisher: PublisherHome, folder: Path, name: str, key: bytes, *inputs: DatasetId) -> PeerChain:
    """A derivative that has no steps yet, so that no engine is needed to take it."""
    chain = PeerChain(folder, key=key, name=name)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select("SELECT * FROM in0", *inputs))
    publisher.keep(chain)
    return chain


def run(node: Node, *words: str) -> int:
    return main([*words, "--home", str(node.home.folder.path)])


# Repositories


def test_reference_into_a_repository_is_its_url_and_the_name(node: Node) -> None:
    node.remotes.add("Hub", "https://hub.example/data/")

    assert node.remotes.resolve("hub/cities") == "https://hub.example/data/cities"
    assert node.remotes.resolve("hub/acme/cities") == "https://hub.example/data/acme/cities"
    assert node.remotes.resolve("file:///x/cities") == "file:///x/cities"
    did = str(DatasetId(bytes(32)))
    assert node.remotes.resolve(f"hub/{did}") == f"https://hub.example/data/{did}"


@pytest.mark.parametrize("text", ["hob/cities", "hob/acme/cities"])
def test_unknown_repository_is_an_error_with_the_nearest_name(node: Node, text: str) -> None:
    node.remotes.add("hub", "https://hub.example")
    with pytest.raises(UnknownRepositoryError, match="did you mean 'hub'"):
        node.remotes.resolve(text)


def test_name_of_a_repository_is_not_taken_twice(node: Node) -> None:
    node.remotes.add("hub", "https://hub.example")
    with pytest.raises(UsageError, match=r"hub\.example already"):
        node.remotes.add("HUB", "https://other.example")


@pytest.mark.parametrize(("name", "url"), [("a b", "https://x"), ("hub", "hub.example"), ("hub", "")])
def test_repository_without_a_name_or_url_is_rejected(node: Node, name: str, url: str) -> None:
    with pytest.raises(MalformedError):
        node.remotes.add(name, url)


def test_repository_that_nothing_here_can_ask_is_rejected_when_it_is_added(node: Node) -> None:
    for url in ("ftp://hub.example/data", "odf+file:///hub", "gs://hub"):
        with pytest.raises(UnsupportedError, match="supported: http, https, "):
            node.remotes.add("hub", url)
    for number, scheme in enumerate(ADDRESS_SCHEMES):
        node.remotes.add(f"hub{number}", f"{scheme}://hub.example/data")


def test_repo_commands_do_as_they_say(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(node, "repo", "list") == 0
    assert "repo add" in capsys.readouterr().err
    assert run(node, "repo", "add", "hub", "https://hub.example") == 0
    assert run(node, "repo", "list", "-o", "json") == 0
    assert '"url": "https://hub.example"' in capsys.readouterr().out
    assert run(node, "repo", "delete") == 2
    assert run(node, "repo", "delete", "hob") == 3
    assert run(node, "repo", "delete", "--all") == 0
    assert node.store.list_repositories() == ()


# Aliases


def test_pull_by_reference_is_remembered_and_used(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher.keep(chain)
    export_all(publisher, tmp_path / "hub")
    run(node, "repo", "add", "hub", (tmp_path / "hub").as_uri())

    assert run(node, "pull", "hub/cities") == 0
    (record,) = node.store.list_datasets()
    assert [r.url for r in node.store.list_remotes(record.id, RemoteDirection.PULL)] == ["hub/cities"]

    # The alias follows the repository.
    (tmp_path / "hub").rename(tmp_path / "moved")
    run(node, "repo", "add", "new", (tmp_path / "moved").as_uri())
    assert run(node, "pull", "cities") == 3
    run(node, "repo", "alias", "add", "--pull", "cities", "new/cities")
    assert run(node, "pull", "cities") == 0, capsys.readouterr().err
    assert run(node, "repo", "alias", "delete", "cities", "new/cities") == 0
    assert run(node, "repo", "alias", "delete", "cities", "new/cities") == 3


def test_pull_without_alias_remembers_none(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    publisher.keep(chain)
    export_all(publisher, tmp_path / "hub")
    assert run(node, "pull", (tmp_path / "hub" / "cities").as_uri(), "--no-alias") == 0
    assert node.store.list_remotes(chain.id, RemoteDirection.PULL) == ()


def test_path_is_a_place_too(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.keep(chain)
    monkeypatch.chdir(tmp_path)
    assert main(["push", "cities", "--to", "./hub/cities", "--home", str(publisher.judge.home.path)]) == 0
    assert run(node, "pull", "./hub/cities") == 0
    (remote,) = node.store.list_remotes(chain.id, RemoteDirection.PULL)
    assert remote.url == (tmp_path / "hub" / "cities").as_uri()


def test_alias_in_a_repository_goes_with_it(node: Node, publisher: PublisherHome, chain: PeerChain) -> None:
    publisher.keep(chain)
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as own:
        (record,) = own.store.list_datasets()
        own.remotes.add("hub", NOWHERE)
        own.remotes.add_alias(record, RemoteDirection.PUSH, "hub/cities")
        own.remotes.add_alias(record, RemoteDirection.PUSH, "file:///x/cities")
        own.remotes.delete("HUB")
        assert own.remotes.list_addresses(record, RemoteDirection.PUSH) == ["file:///x/cities"]


def test_push_goes_to_every_alias_and_one_that_fails_does_not_stop_the_others(
    publisher: PublisherHome, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher.keep(chain)
    home = str(publisher.judge.home.path)
    first, second = (tmp_path / "first" / "cities").as_uri(), (tmp_path / "second" / "cities").as_uri()
    assert main(["push", "cities", "--home", home]) == 2
    assert "--to" in capsys.readouterr().err
    assert main(["push", "cities", "--to", first, "--home", home]) == 0
    main(["repo", "alias", "add", "--push", "cities", f"{NOWHERE}/cities", "--home", home])
    main(["repo", "alias", "add", "--push", "cities", second, "--home", home])

    assert main(["push", "--all", "--home", home]) == 5

    reported = capsys.readouterr()
    assert "127.0.0.1" in reported.err
    assert (tmp_path / "second" / "cities" / "refs" / "head").read_text() == str(chain.head.hash)
    assert "has everything already" in reported.out


def test_pull_asks_the_next_address_where_one_does_not_answer(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    early = chain.up_to(2)
    publisher.keep(early)
    export_all(publisher, tmp_path / "hub")
    assert run(node, "pull", (tmp_path / "hub" / "cities").as_uri(), "--no-alias") == 0
    run(node, "repo", "alias", "add", "--pull", "cities", f"{NOWHERE}/cities")
    publisher.keep(chain)
    export_all(publisher, tmp_path / "hub")

    assert run(node, "pull", "cities") == 0

    assert node.store.get_head(chain.id) == chain.head


# Everything


def test_pull_of_everything_leaves_out_what_has_no_source_and_goes_on_after_a_failure(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher.keep(chain)
    other = root_chain(tmp_path, key=NEW_KEY, name="a.first")
    publisher.keep(other)
    export_all(publisher, tmp_path / "hub")
    for name in ("a.first", "cities"):
        assert run(node, "pull", (tmp_path / "hub" / name).as_uri()) == 0
    (tmp_path / "hub" / "a.first" / "refs" / "head").unlink()
    capsys.readouterr()

    assert run(node, "pull", "--all") == 3

    reported = capsys.readouterr()
    assert "cities: up to date" in reported.out
    assert "pull: a.first" in reported.err
    # Where they were made, they have no source to be polled.
    assert main(["pull", "--all", "--home", str(publisher.judge.home.path)]) == 0


def test_archive_keeps_the_name_of_its_dataset_whatever_the_file_is_called(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    publisher.keep(chain)
    archive = str(tmp_path / "backup of today.tar")
    assert main(["export", "cities", "--to", archive, "--home", str(publisher.judge.home.path)]) == 0

    assert run(node, "import", archive) == 0

    assert [record.name for record in node.store.list_datasets()] == ["cities"]


# Inputs


@pytest.mark.parametrize("way", ["folder", "server"])
def test_recursive_pull_finds_inputs_of_inputs_and_brings_them_first(
    way: str, node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    publisher.keep(chain)
    middle = derive(publisher, tmp_path, "m.derived", NEW_KEY, chain.id)
    last = derive(publisher, tmp_path, "a.derived", NODE_KEY, middle.id, chain.id)

    async def plan(base: str) -> list[str]:
        targets = node.planner.plan([f"{base}/a.derived"])
        planned = await node.planner.plan_with_inputs(targets)
        for target in planned:
            await node.pulling.pull(target, PullOptions(), Silence())
        return [target.label.rpartition("/")[2] for target in planned]

    async def story() -> list[str]:
        if way == "folder":
            await asyncio.to_thread(export_all, publisher, tmp_path / "hub")
            return await plan((tmp_path / "hub").as_uri())
        async with TestNode.create(tmp_path / "publisher").serving() as address:
            return await plan(address)

    assert asyncio.run(story()) == ["cities", "m.derived", "a.derived"]
    assert {record.id for record in node.store.list_datasets()} == {chain.id, middle.id, last.id}


def test_input_that_is_nowhere_is_named_with_what_to_do(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    derive(publisher, tmp_path, "m.derived", NEW_KEY, chain.id)
    export_all(publisher, tmp_path / "hub")
    targets = node.planner.plan([(tmp_path / "hub" / "m.derived").as_uri()])

    with pytest.raises(UnknownDatasetError, match="pull it by its URL first"):
        asyncio.run(node.planner.plan_with_inputs(targets))


def test_dataset_of_another_identity_is_not_taken_for_the_input(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    """The name under which it is read is not proof."""
    publisher.keep(root_chain(tmp_path, key=NODE_KEY, name="in0"))
    derive(publisher, tmp_path, "m.derived", NEW_KEY, chain.id)
    export_all(publisher, tmp_path / "hub")

    assert run(node, "pull", "--recursive", (tmp_path / "hub" / "m.derived").as_uri()) == 3
    assert node.store.list_datasets() == ()


def test_inputs_that_are_held_are_brought_up_to_date(
    node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    early = chain.up_to(2)
    publisher.keep(early)
    derive(publisher, tmp_path, "m.derived", NEW_KEY, chain.id)
    export_all(publisher, tmp_path / "hub")
    assert run(node, "pull", "-r", (tmp_path / "hub" / "m.derived").as_uri()) == 0
    publisher.keep(chain)
    export_all(publisher, tmp_path / "hub")

    assert run(node, "pull", "--recursive", "m.derived") == 0

    assert node.store.get_head(chain.id) == chain.head


# Exports on a web server


def static_files(folder: Path, *, pages: bool) -> object:
    """What any web server does with a folder; some answer what they lack with a page."""

    async def answer(request: web.Request) -> web.StreamResponse:
        path = folder / request.path.lstrip("/")
        if path.is_file():
            return web.Response(body=path.read_bytes())
        return web.Response(text="<html>welcome</html>") if pages else web.Response(status=403)

    return answer


@pytest.mark.parametrize("pages", [True, False])
@pytest.mark.parametrize("signed", [True, False])
def test_export_on_a_web_server_is_pulled_with_its_signatures(
    signed: bool, pages: bool, node: Node, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    publisher.keep(chain)
    export_all(publisher, tmp_path / "hub")
    if not signed:
        for folder in ("signatures", "signed-heads"):
            shutil.rmtree(tmp_path / "hub" / "cities" / folder)

    async def story() -> AcceptanceReport:
        async with serving(static_files(tmp_path / "hub", pages=pages)) as http:  # type: ignore[arg-type]
            (target,) = node.planner.plan([f"{http.base}/cities"])
            report = await node.pulling.pull(target, PullOptions(policy=Policy.UNSIGNED), Silence())
            assert isinstance(report, AcceptanceReport)
            return report

    assert asyncio.run(story()).record.trust is (Trust.SIGNED if signed else Trust.UNSIGNED)
