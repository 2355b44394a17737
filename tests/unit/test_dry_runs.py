"""``--dry-run``: the same words as the deed, and nothing is changed."""

from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_node.composition import Node
from support.offers import Judge, PublisherHome, root_chain


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def on_progress(judge: Judge, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["--home", str(judge.home.path), *words]) == 0
    return capsys.readouterr().out


def test_dry_run_of_delete_says_what_would_go_and_nothing_goes(
    node: Node, judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PublisherHome(judge).keep(root_chain(tmp_path))
    objects = contents(judge.home.objects)
    assert on_progress(judge, capsys, "delete", "--dry-run", "cities") == "would delete cities\n"
    assert [record.name for record in node.store.list_datasets()] == ["cities"]
    assert contents(judge.home.objects) == objects
    assert list(node.store.iter_audit(limit=5)) == []
    assert on_progress(judge, capsys, "delete", "cities", "-y") == "deleted cities\n"


def test_dry_run_of_gc_counts_what_would_go_and_nothing_goes(
    node: Node, judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    with node.objects.writing():
        (judge.home.staging / "left").mkdir(parents=True)
        (judge.home.staging / "left" / "a").write_bytes(b"12345")
    before = contents(judge.home.path)
    stated = on_progress(judge, capsys, "gc", "--dry-run")
    assert stated == "would remove 0 objects and 1 unfinished files or rejections, 5 bytes\n"
    assert contents(judge.home.staging) == {k.removeprefix("staging/"): v for k, v in before.items() if "left" in k}
    assert on_progress(judge, capsys, "gc") == stated.replace("would remove", "removed")
    assert not (judge.home.staging / "left").exists()
    assert on_progress(judge, capsys, "gc", "--dry-run").startswith("would remove 0 objects and 0 unfinished")
