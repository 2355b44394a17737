"""Clause ENGINE-13: what takes long is made once, appears whole, and stays while it is used."""

import os
import threading
from pathlib import Path

import pytest

from odf_spark.class_data import CacheFolder

MAX = 8


def file_with(content: str):
    """Give a way to make a file with a content."""

    def make(folder: Path) -> Path:
        made = folder / "made"
        made.write_text(content)
        return made

    return make


def fails(folder: Path) -> Path:
    (folder / "half").write_text("half")
    raise ValueError("it does not go")


def names(engine_files: CacheFolder) -> set[str]:
    return {path.name for path in engine_files.folder.iterdir() if path.suffix != ".lock"}


@pytest.fixture
def engine_files(tmp_path) -> CacheFolder:
    return CacheFolder(tmp_path / "cache" / "things", ".txt")


def test_what_is_good_is_not_made_again(engine_files):
    assert engine_files.find("a", is_good=Path.is_file) is None
    path = engine_files.make("a", file_with("first"), is_good=Path.is_file)
    assert engine_files.make("a", fails, is_good=Path.is_file) == path
    assert engine_files.find("a", is_good=Path.is_file) == path
    assert path.read_text() == "first"


def test_what_is_no_longer_good_is_made_anew(engine_files):
    for content in ("first", "second"):
        path = engine_files.make("a", file_with(content), is_good=lambda _: False)
        assert path.read_text() == content
    assert names(engine_files) == {"a.txt"}


def test_what_cannot_be_made_leaves_what_was_there(engine_files):
    path = engine_files.make("a", file_with("first"), is_good=Path.is_file)
    with pytest.raises(ValueError, match="does not go"):
        engine_files.make("a", fails, is_good=lambda _: False)
    assert path.read_text() == "first"
    assert names(engine_files) == {"a.txt"}


def test_two_that_want_it_make_it_once(engine_files):
    counted = []

    def make(folder: Path) -> Path:
        counted.append(folder)
        return file_with("it")(folder)

    threads = [
        threading.Thread(target=engine_files.make, args=("a", make), kwargs={"is_good": Path.is_file}) for _ in "1234"
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(counted) == 1


def test_what_was_used_least_of_late_goes(engine_files):
    make = file_with("it")
    for number in range(MAX):
        os.utime(engine_files.make(f"{number}", make, is_good=Path.exists), (number, number))
    engine_files.find("0", is_good=Path.exists)
    engine_files.make("new", make, is_good=Path.exists)
    assert names(engine_files) == {f"{name}.txt" for name in ("0", *range(2, MAX), "new")}
