"""Clauses ADDED-18 and ADDED-19: several engines of one name, told apart by their digests."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from odf_engines.errors import EngineMissingError
from odf_engines.registry import get_engine
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.engines.finding import choose_build, get_engine_here
from odf_node.home_folder import HomeFolder
from odf_protocol.events import TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.city_datasets import add_cities, ingest_cities, write_derivative
from support.contract_engine import write_engine
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")


def add_engine(node: RealNode, file: Path, name: str = "other-one") -> str:
    digest: str = node.must("engine", "add", name, str(file), "-o", "json").json()["digest"]
    return digest


def shelve(node: RealNode, file: Path, name: str = "other-one") -> str:
    """Add an engine that nobody will ask, without starting it."""
    engine_files, now = EngineFolder(HomeFolder(node.home)), Timestamp.from_unix_ms(time.time_ns() // 1_000_000)
    return engine_files.add(name, file, WantedStart(), now=now, examine=lambda _engine: None).digest


def rows_of(node: RealNode, name: str) -> list[dict[str, object]]:
    return [each for each in node.must("engine", "list", "-o", "json").json() if each["name"] == name]


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    node = RealNode(tmp_path / "home")
    add_cities(node, tmp_path)
    return node


def test_each_step_is_of_the_build_that_its_record_names_and_new_ones_of_the_last(
    node: RealNode, tmp_path: Path
) -> None:
    plain, other = write_engine(tmp_path / "plain"), write_engine(tmp_path / "other", "another-result")
    first = add_engine(node, plain)
    node.must("add", write_derivative(tmp_path))
    node.must("pull", "all.cities")
    second = add_engine(node, other)  # whose rows differ
    ingest_cities(node, tmp_path, 2)
    node.must("pull", "all.cities")
    assert "841601" in node.must("tail", "all.cities", "-o", "csv").out
    rows = rows_of(node, "other-one")
    assert [(each["digest"], each["isDefault"]) for each in rows] == [(second, True), (first, False)]
    (finding,) = node.must("verify", "all.cities", "-o", "json").json()
    assert (finding["valid"], finding["replayedSteps"]) == (True, 2)

    # Whoever has both re-executes each step with its own, and says of each which it was.
    receiver = RealNode(tmp_path / "receiver")
    assert [add_engine(receiver, file) for file in (other, plain)] == [second, first]
    with node.serving() as address:
        receiver.must("pull", f"{address}/cities")
        receiver.must("pull", f"{address}/all.cities")
        said = receiver.must("trust", "all.cities", "-o", "json").out
        for each in (first, second):
            assert f"re-executed with other-one {Multihash.parse(each).short}: 1 of 1 steps agree" in said
        receiver.must("delete", "all.cities", "--yes")

        # Whose policy counts one of them counts the other's steps for nothing.
        policies = f"kind: AcceptPolicies\nversion: 1\ndefault: {{accept: re-executed, engines: [{first}]}}\n"
        (receiver.home / "policies.yaml").write_text(policies)
        refused = receiver.run("pull", f"{address}/all.cities")
        assert refused.code == 4
        assert f"does not count engine 'other-one' (digest {second})" in refused.err
        (receiver.home / "policies.yaml").unlink()

        # Without the second build, its step is re-executed with the first: another result, and the cause is told.
        receiver.must("engine", "remove", f"other-one@{second[-8:]}")
        assert [each["digest"] for each in rows_of(receiver, "other-one")] == [first]
        refused = receiver.run("pull", f"{address}/all.cities")
        assert refused.code == 4
        assert "another build of the engine" in refused.err or "engine-version" in refused.err
    assert [each["name"] for each in receiver.must("list", "-o", "json").json()] == ["cities"]


def test_added_engine_may_have_the_name_of_an_installed_one_which_computes_new_steps(
    node: RealNode, tmp_path: Path
) -> None:
    file = write_engine(tmp_path / "engine")
    digest = add_engine(node, file, "DataFusion")
    ours, theirs = rows_of(node, "datafusion")
    assert (ours["origin"], ours["isDefault"]) == ("installed", True)
    assert (theirs["origin"], theirs["isDefault"], theirs["digest"]) == ("program", False, digest)
    query = "SELECT event_time, people FROM c"  # which the added one does not look at: it passes all columns on
    for version in ("", digest[-8:]):
        node.must("add", write_derivative(tmp_path, "datafusion", query, version=version))
        node.must("pull", "all.cities")
        text = node.must("log", "all.cities", "-o", "yaml").out
        assert ("city" in node.must("tail", "all.cities", "-o", "csv").out) == bool(version)
        (finding,) = node.must("verify", "all.cities", "-o", "json").json()
        assert (finding["valid"], finding["replayedSteps"]) == (True, 1)
        # ROWS-9: what the added one wrote is no row of ours, whatever its name.
        (made,) = re.findall(r"physicalHash: (\w+)", text)
        (known,) = list((node.home / "rows").rglob(f"{made}-*")) or [None]
        assert (known is not None and known.stat().st_nlink > 1) == (not version)
        node.must("delete", "all.cities", "--yes")
    again = node.run("engine", "add", "datafusion", str(file))
    assert (again.code, "is here already" in again.err) == (2, True)
    several = node.run("engine", "remove", "datafusion@00000000")
    assert several.code == 3
    node.must("engine", "remove", "datafusion")
    assert len(rows_of(node, "datafusion")) == 1
    refused = node.run("engine", "remove", "datafusion")
    assert "engine 'datafusion' was not added" in refused.err


def test_several_of_one_name_are_not_removed_or_exported_by_the_name_alone(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    files = [write_engine(tmp_path / each, each) for each in ("honest", "fewer-rows")]
    digests = [shelve(node, file) for file in files]
    for words in (["remove", "other-one"], ["export", "other-one", str(tmp_path / "out")]):
        refused = node.run("engine", *words)
        assert refused.code == 2
        assert all(f"other-one@{digest}" in refused.err for digest in digests)
    assert not (tmp_path / "out").exists()
    node.must("engine", "export", f"other-one@{digests[0]}", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == files[0].read_bytes()
    assert node.must("engine", "inspect", f"other-one@{digests[0]}", "-o", "json").json()["digest"] == digests[0]
    # A build of an earlier version of this program, which had one engine of a name.
    folder = node.home / "engines"
    (folder / f"other-one@{digests[0]}").rename(folder / "other-one")
    assert {each["digest"] for each in rows_of(node, "other-one")} == set(digests)
    node.must("engine", "remove", f"other-one@{digests[0]}")
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [f"other-one@{digests[1]}"]

    # ADDED-19: a version that a query states says which, where no record does; a digest is no part of a name.
    engine_files = EngineFolder(HomeFolder(node.home))
    shelve(node, files[0])
    (last, before) = engine_files.find("other-one")
    stated = TransformSql(engine="Other-One", version=before.engine.version)  # type: ignore[union-attr]
    assert choose_build(stated, None, engine_files) == before.build
    assert choose_build(stated, Multihash.parse(last.digest), engine_files) == last.build
    assert choose_build(TransformSql(engine="other-one"), None, engine_files) == "other-one"
    assert get_engine_here("other-one", engine_files) is last.engine  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["datafusion@00000000", "datafusion@", "spark@../../x", "@", "datafusion@DIGEST"])
def test_transform_cannot_name_a_digest(tmp_path: Path, name: str) -> None:
    node = RealNode(tmp_path / "home")
    name = name.replace("DIGEST", str(get_engine("datafusion").digest()))
    with pytest.raises(EngineMissingError):
        choose_build(TransformSql(engine=name), None, EngineFolder(HomeFolder(node.home)))


def test_engine_that_is_removed_while_it_is_looked_at_is_not_damaged_but_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = RealNode(tmp_path / "home")
    shelve(node, write_engine(tmp_path / "added", "fewer-rows"))
    engine_files, really_open = EngineFolder(HomeFolder(node.home)), Path.open
    (engine,) = engine_files.list()

    def remove_first(path: Path, *arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        EngineFolder(HomeFolder(node.home)).remove(engine)
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", remove_first)
    assert engine_files.list() == ()


def test_record_of_another_engine_chooses_no_build(tmp_path: Path) -> None:
    """A record that names a build of another name, or says nonsense, does not decide what computes a step."""
    node = RealNode(tmp_path / "home")
    elsewhere = shelve(node, write_engine(tmp_path / "elsewhere", "another-result"), "elsewhere")
    shelve(node, write_engine(tmp_path / "added", "fewer-rows"), "datafusion")
    engine_files = EngineFolder(HomeFolder(node.home))
    for said in (Multihash.parse(elsewhere), Multihash.of_sha3_256(b"nothing")):
        assert choose_build(TransformSql(engine="datafusion"), said, engine_files) == "datafusion"
