"""Clauses ADDED-1 to ADDED-5, ADDED-10 and HOME-50: engines that the operator of a node adds, by its commands."""

from pathlib import Path

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError
from odf_foreign.engine_folder import EngineFolder
from odf_node.home_folder import HomeFolder
from odf_node.ports.engines import ShelvedEngine
from support.city_datasets import add_cities, ingest_cities, write_derivative
from support.contract_engine import write_engine
from support.engine_archives import Entry, docker_archive, hard_link, program, tar_of, write
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    """A node with a root that has rows."""
    node = RealNode(tmp_path / "home")
    add_cities(node, tmp_path)
    return node


def kept(node: RealNode) -> set[str]:
    """Every file of a home but those that can be made again."""
    return {name for name in node.snapshot() if not name.startswith("cache/")}


def names(node: RealNode) -> set[str]:
    return {each["name"] for each in node.must("engine", "list", "-o", "json").json()}


def test_added_engine_derives_and_others_with_the_same_file_verify_it(node: RealNode, tmp_path: Path) -> None:
    file = write_engine(tmp_path / "engine")
    added = node.must("engine", "add", "Other-One", str(file), "-o", "json").json()
    assert added["name"] == "other-one"
    graded = node.must("add", "-o", "json", write_derivative(tmp_path, "OTHER-one")).json()
    assert graded[0]["grade"]["level"] == "pinned"
    node.must("pull", "all.cities")
    ingest_cities(node, tmp_path, 2)
    node.must("pull", "all.cities")
    assert "Turin" in node.must("tail", "all.cities", "-o", "csv").out
    (finding,) = node.must("verify", "all.cities", "-o", "json").json()
    assert (finding["valid"], finding["replayedSteps"]) == (True, 2)
    (row,) = [each for each in node.must("engine", "list", "-o", "json").json() if each["name"] == "other-one"]
    assert (row["origin"], row["offers"], row["datasets"], row["steps"]) == ("program", "transform", 1, 2)
    assert row["digest"] == added["digest"]

    # Another node lacks it, and says which one it wants; with the same file it computes all again.
    other, exported = RealNode(tmp_path / "other"), tmp_path / "exported"
    with node.serving() as address:
        other.must("pull", f"{address}/cities")
        before = other.snapshot()
        refused = other.run("pull", f"{address}/all.cities")
        assert refused.code != 0
        assert "'OTHER-one' is not installed" in refused.err
        assert added["digest"] in refused.err
        assert other.snapshot().keys() == before.keys()
        node.must("engine", "export", "other-one", str(exported))
        assert exported.read_bytes() == file.read_bytes()
        assert other.must("engine", "add", "other-one", str(exported), "-o", "json").json() == added

        # POLICY-10: that it is here does not mean that its word counts.
        policies = "kind: AcceptPolicies\nversion: 1\ndefault: {accept: re-executed, engines: [ENGINE]}\n"
        write(other.home / "policies.yaml", policies.replace("ENGINE", "spark").encode())
        before = kept(other)
        refused = other.run("pull", f"{address}/all.cities")
        assert refused.code == 4
        assert f"does not count engine 'other-one' (digest {added['digest']})" in refused.err
        assert kept(other) == before
        write(other.home / "policies.yaml", policies.replace("ENGINE", added["digest"]).encode())
        other.must("pull", f"{address}/all.cities")
    (listed,) = [each for each in other.must("list", "-o", "json").json() if each["name"] == "all.cities"]
    assert listed["trust"] == "re-executed"

    # It is gone again: what waits for it is told, with the digest.
    removed = other.must("engine", "remove", "OTHER-ONE")
    assert "all.cities" in removed.out
    shown = other.must("engine", "list").out
    assert f"not here: 'other-one', digest {added['digest']}; 1 dataset waits for it: all.cities" in shown
    waiting = [each for each in other.must("status", "-o", "json").json() if each["dataset"] == "all.cities"]
    what = f"its engine 'other-one' (digest {added['digest']}) is not here"
    assert {"condition": "waiting", "dataset": "all.cities", "what": what,
            "command": "odf-node engine add other-one FILE"} in waiting  # fmt: skip
    (finding,) = other.must("verify", "--all", "all.cities", "-o", "json").json()
    assert finding["replayedSteps"] is None
    assert added["digest"] in finding["notChecked"]


def test_engine_whose_rows_differ_each_time_is_found_out(node: RealNode, tmp_path: Path) -> None:
    node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine", "wrong-rows")))
    node.must("add", write_derivative(tmp_path))
    node.must("pull", "all.cities")
    other = RealNode(tmp_path / "other")
    with node.serving() as address:
        other.must("pull", f"{address}/cities")
        other.must("engine", "add", "other-one", str(tmp_path / "engine"))
        before = other.snapshot()
        refused = other.run("pull", f"{address}/all.cities")
    assert refused.code == 4
    assert "step is reproduced (PLAN-7)" in refused.err
    assert "people" in refused.err
    assert {name for name in other.snapshot() if name.startswith("objects/")} == {
        name for name in before if name.startswith("objects/")
    }
    assert [each["name"] for each in other.must("list", "-o", "json").json()] == ["cities"]


@pytest.mark.parametrize("behaviour", ["wrong-offsets-in-file", "dies"])
def test_step_of_an_engine_that_lies_changes_nothing(node: RealNode, tmp_path: Path, behaviour: str) -> None:
    node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine", behaviour)))
    node.must("add", write_derivative(tmp_path))
    before = node.snapshot()
    failed = node.run("pull", "all.cities")
    assert failed.code == 1
    assert "engine failure" in failed.err
    after = node.snapshot()
    assert {name for name in after if name.startswith("objects/")} == {
        name for name in before if name.startswith("objects/")
    }
    assert "all.cities" in node.must("status").out


def test_pull_shows_that_a_slow_engine_is_at_work(node: RealNode, tmp_path: Path) -> None:
    node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine", "works-slowly")))
    node.must("add", write_derivative(tmp_path))
    pulled = node.must("pull", "all.cities", environment={"ODF_NODE_PROGRESS_S": "0.2"})
    assert "all.cities: engine 'other-one' is at work (" in pulled.err


def test_query_that_the_engine_calls_invalid_is_not_added(node: RealNode, tmp_path: Path) -> None:
    node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine")))
    refused = node.run("add", write_derivative(tmp_path, query="NONSENSE"))
    assert refused.code == 2
    assert "NONSENSE is no query" in refused.err
    assert [each["name"] for each in node.must("list", "-o", "json").json()] == ["cities"]


def test_engine_that_does_not_start_is_not_added(node: RealNode, tmp_path: Path) -> None:
    before = kept(node)
    failed = node.run("engine", "add", "other-one", str(write_engine(tmp_path / "engine", "ends-at-once")))
    assert failed.code == 1
    assert "was not added: its program ended with code 3" in failed.err
    assert "the last that it wrote: no licence found" in failed.err
    assert kept(node) - before <= {"engines/engines.lock"}
    assert "other-one" not in names(node)


def test_archive_that_leaves_its_root_is_not_added(node: RealNode, tmp_path: Path) -> None:
    before = kept(node)
    layer = tar_of([program("run"), hard_link("shadow", "../../../etc/shadow")])
    file = write(tmp_path / "image.tar", docker_archive([layer], {"Entrypoint": ["/run"]}))
    refused = node.run("engine", "add", "other-one", str(file))
    assert refused.code == 7
    assert "expected a path inside the root, found one with '..'" in refused.err
    assert kept(node) - before <= {"engines/engines.lock"}
    assert [path.name for path in (node.home / "engines").iterdir()] == ["engines.lock"]


@pytest.mark.parametrize(
    ("words", "code", "stated"),
    [
        (["add", "other-one", "FILE"], 2, "is here already"),
        (["add", "../x", "FILE"], 7, "malformed name of an engine"),
        (["add", "more", "/no/such/file"], 2, "/no/such/file is no file"),
        (["add", "more", "FILE", "--port", "70000"], 7, "1 to 65535"),
        (["add", "more", "FILE", "--command", "'"], 2, "--command"),
        (["remove", "engines.lock"], 7, "malformed name of an engine"),
        (["remove", "spark"], 3, "engine 'spark' was not added"),
        (["remove", "nothing"], 3, "there is no added engine 'nothing'"),
        (["remove", "other-one@00000000"], 3, "there is no added engine 'other-one@00000000'"),
        (["remove", "other-one@../../x"], 7, "NAME@DIGEST, the digest whole or at least its last 8 characters"),
        (["remove", "other-one@"], 7, "NAME@DIGEST"),
        (["export", "nothing", "TARGET"], 3, "there is no added engine 'nothing'"),
        (["export", "other-one", "FILE"], 2, "is there already; nothing was written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_requests_that_make_no_sense_say_what_would(
    tmp_path_factory: pytest.TempPathFactory, shelved: tuple[RealNode, Path], words: list[str], code: int, stated: str
) -> None:
    node, file = shelved
    target = tmp_path_factory.mktemp("target") / "file"
    before = kept(node)
    refused = node.run("engine", *({"FILE": str(file), "TARGET": str(target)}.get(word, word) for word in words))
    assert (refused.code, stated in refused.err) == (code, True), refused.err
    assert kept(node) == before
    assert not target.exists()


@pytest.fixture(scope="module")
def shelved(tmp_path_factory: pytest.TempPathFactory) -> tuple[RealNode, Path]:
    """A node with an added engine, and its file."""
    folder = tmp_path_factory.mktemp("shelved")
    node, file = RealNode(folder / "home"), write_engine(folder / "engine")
    node.must("engine", "add", "other-one", str(file))
    return node, file


def test_damaged_engine_is_named_and_can_be_forgotten(node: RealNode, tmp_path: Path) -> None:
    """ADDED-10: it keeps nothing else from being listed."""
    node.must("engine", "add", "another", str(write_engine(tmp_path / "sound", "fewer-rows")))
    added = node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine")), "-o", "json").json()
    build = f"other-one@{added['digest']}"
    place = node.home / "engines" / build
    (place / "file").write_bytes((place / "file").read_bytes() + b"# decayed")
    refused = node.run("add", write_derivative(tmp_path))
    assert refused.code == 1
    assert "engine other-one is not what was added" in refused.err
    (found,) = [each for each in node.run("doctor", "-o", "json").json() if each["what"] == "engine other-one"]
    assert (found["ok"], "is not what was added" in found["found"]) == (False, True)
    for spoil in (b"", b"{", b"[]", (place / "engine.json").read_bytes().replace(b"other-one", b"third-one")):
        if spoil:
            (place / "engine.json").write_bytes(spoil)
        rows = {each["name"]: each for each in node.must("engine", "list", "-o", "json").json()}
        assert rows.keys() >= {"another", "datafusion", "other-one", "spark"}
        assert f"odf-node engine remove {build}" in rows["other-one"]["damage"]
        assert not rows["another"]["damage"]
        assert "damaged: " in node.must("engine", "list").out
        assert node.run("status").code == 0
        assert node.run("add", write_derivative(tmp_path)).code in {1, 6}
    (found,) = [each for each in node.run("doctor", "-o", "json").json() if each["what"] == "engine other-one"]
    assert (found["ok"], build in found["fix"]) == (False, True)
    node.must("engine", "remove", build)
    assert names(node) >= {"another"}
    assert "other-one" not in names(node)


def test_what_a_killed_command_left_is_cleared_by_the_next(node: RealNode, tmp_path: Path) -> None:
    left = node.home / "engines" / ".other-one-killed"
    left.mkdir(parents=True)
    write(left / "file", b"half of it")
    assert "other-one" not in names(node)
    added = node.must("engine", "add", "other-one", str(write_engine(tmp_path / "engine")), "-o", "json").json()
    assert sorted(path.name for path in (node.home / "engines").iterdir()) == [
        "engines.lock",
        f"other-one@{added['digest']}",
    ]


def test_entry_is_plain_text_in_a_list(node: RealNode, tmp_path: Path) -> None:
    """An archive calls itself what it wants; a terminal is not steered by it."""
    layer = tar_of([Entry("x")])
    file = write(tmp_path / "image.tar", docker_archive([layer], {"Entrypoint": ["/no\x1b[31m"]}))
    refused = node.run("engine", "add", "other-one", str(file))
    assert refused.code == 1
    assert "cannot be started" in refused.err
    assert "\x1b" not in refused.err


def test_question_is_not_asked_of_an_engine_that_answers_none(shelved: tuple[RealNode, Path]) -> None:
    refused = shelved[0].run("sql", "--engine", "other-one", "-c", "SELECT 1")
    assert refused.code == 8
    assert "engine 'other-one' does not offer query (offered by: datafusion, spark)" in refused.err


def test_change_of_files_is_noticed_before_each_start(shelved: tuple[RealNode, Path], tmp_path: Path) -> None:
    """ADDED-5: also by a process that has started it before."""
    engine_files = EngineFolder(HomeFolder(shelved[0].home))
    (found,) = engine_files.find("other-one")
    assert isinstance(found, ShelvedEngine)
    (again,) = engine_files.find("Other-One")
    assert isinstance(again, ShelvedEngine)
    assert again.engine is found.engine
    program = shelved[0].home / "engines" / found.build / "file"
    before = program.read_bytes()
    with found.engine.open(tmp_path, Limits()):
        program.write_bytes(before + b"# another")
    try:
        with pytest.raises(EngineFailureError, match="is not what was added"):
            found.engine.open(tmp_path, Limits())
    finally:
        program.write_bytes(before)
