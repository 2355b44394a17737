"""``--dry-run`` of pulls and pushes: what would be done, in its words, and nothing is done (ING-25)."""

import json
from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_protocol.events import DatasetKind, ExecuteTransform, ExecuteTransformInput, Seed, SetDataSchema
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import OTHER_KEY


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Mine:
    """A node that asks others, which are folders here."""

    def __init__(self, judge: Judge, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.judge, self.folder, self.capsys = judge, folder, capsys

    def serve(self, chain: PeerChain, name: str = "") -> str:
        place = self.folder / "elsewhere" / (name or chain.name)
        chain.write_layout(place)
        return place.as_uri()

    def on_progress(self, *words: str) -> list[str]:
        assert main(["--home", str(self.judge.home.path), *words]) == 0
        return self.capsys.readouterr().out.splitlines()

    def datasets(self) -> list[tuple[str, int]]:
        with self.judge.opened() as store:
            return [(each.name, each.head.sequence_number) for each in store.list_datasets()]


@pytest.fixture
def mine(judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Mine:
    return Mine(judge, tmp_path, capsys)


def view_chain(folder: Path, base: PeerChain) -> PeerChain:
    view = PeerChain(folder, key=b"v" * 32, name="top")
    view.add(Seed(dataset_id=view.id, dataset_kind=DatasetKind.DERIVATIVE))
    view.add(select("SELECT * FROM in0", base.id)).add(SetDataSchema(schema=CITY_SCHEMA))
    took = ExecuteTransformInput(
        dataset_id=base.id, new_block_hash=base.blocks[-1].hash, new_offset=base.next_offset() - 1
    )
    return view.add(ExecuteTransform(query_inputs=(took,), new_watermark=NOON))


def test_dry_run_of_a_first_pull_says_what_is_new_and_takes_nothing(mine: Mine, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    size_bytes = sum(map(len, chain.files.values()))
    rows = chain.next_offset()
    stated = mine.on_progress("pull", mine.serve(chain), "--dry-run")
    assert stated == [
        f"cities: would take 4 new blocks with {rows} rows in 2 files ({size_bytes:,} bytes), new to this node",
        "cities: root data: chain, rows, hashes and signatures would be checked",
    ]
    assert mine.datasets() == []
    assert list(mine.judge.home.objects.rglob("*.*")) == []


def test_dry_run_of_a_later_pull_counts_what_is_new_alone(mine: Mine, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    older, newer = mine.serve(chain.up_to(2), "older"), mine.serve(chain, "newer")
    mine.on_progress("pull", older, "--as", "cities", "--policy", "unsigned")
    before = contents(mine.judge.home.objects)
    (report,) = map(json.loads, ["".join(mine.on_progress("pull", newer, "--dry-run", "-o", "json"))[1:-1]])
    assert (report["newBlocks"], report["newFiles"]["files"], report["otherHistory"]) == (1, 1, False)
    assert mine.on_progress("pull", older, "--dry-run") == ["cities: up to date"]
    assert (mine.datasets(), contents(mine.judge.home.objects)) == ([("cities", 2)], before)


def test_dry_run_tells_another_history_from_growth(mine: Mine, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    fork = chain.replacing(2, lambda event: event).replacing(
        2, lambda event: type(event)(**{**{f: getattr(event, f) for f in event.__slots__}, "new_watermark": NOON})
    )
    mine.on_progress("pull", mine.serve(chain.up_to(2), "here"), "--as", "cities", "--policy", "unsigned")
    (stated,) = mine.on_progress("pull", mine.serve(fork, "there"), "--dry-run")
    assert "has another or an older history than this node, which would be rejected" in stated
    assert mine.datasets() == [("cities", 2)]


def test_dry_run_says_whether_steps_would_be_reexecuted_and_what_that_lacks(mine: Mine, tmp_path: Path) -> None:
    base = root_chain(tmp_path)
    url = mine.serve(view_chain(tmp_path, base))
    stated = mine.on_progress("pull", url, "--dry-run")
    assert stated[1] == "top: 1 step would be re-executed here, by the built-in default"
    assert stated[2].startswith("top: in0, which its query reads, would be needed and is not here")
    with_policy = mine.on_progress("pull", url, "--dry-run", "--policy", "integrity")
    assert with_policy[1:] == ["top: 1 step would not be re-executed, by --policy integrity"]
    assert mine.datasets() == []


def test_dry_run_of_a_derivative_here_says_whether_it_would_run(mine: Mine, tmp_path: Path) -> None:
    base = root_chain(tmp_path)
    view = view_chain(tmp_path, base)
    PublisherHome(mine.judge).keep(base)
    PublisherHome(mine.judge).keep(view)
    assert mine.on_progress("pull", "top", "--dry-run") == ["top: up to date"]
    PublisherHome(mine.judge).keep(base.add_rows([("Bern", 1)]))
    assert mine.on_progress("pull", "top", "--dry-run") == ["top: its query would be run over what is new in 1 input"]
    assert mine.datasets() == [("cities", 4), ("top", 3)]


def test_dry_run_of_a_push_says_what_would_be_sent_and_sends_nothing(mine: Mine, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    PublisherHome(mine.judge).keep(chain)
    place = tmp_path / "shelf" / "cities"
    (stated,) = mine.on_progress("push", "cities", "--to", place.as_uri(), "--dry-run")
    size_bytes = sum(map(len, chain.files.values()))
    would = f"would be offered 4 new blocks with 2 files ({size_bytes:,} bytes), as it shows nothing of it"
    assert stated == f"cities: {place.as_uri()} {would}"
    assert not place.exists()
    mine.on_progress("push", "cities", "--to", place.as_uri())
    (stated,) = mine.on_progress("push", "cities", "--to", place.as_uri(), "--dry-run")
    assert stated.endswith("has everything already")
    other = mine.serve(root_chain(tmp_path, key=OTHER_KEY), "other")
    (stated,) = mine.on_progress("push", "cities", "--to", other, "--dry-run")
    assert "has another or a newer history" in stated


def test_dry_run_has_nothing_to_say_of_a_watermark(mine: Mine, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pull", "cities", "--set-watermark", "2020-01-01", "--dry-run"]
    assert main(["--home", str(mine.judge.home.path), *words]) == 2
    assert "nothing that --dry-run could say" in capsys.readouterr().err
