"""The sink that writes files: of an entry all or nothing stays, also where a file is full in the middle (SINK-4)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odf_corrections.sinks.local import File
from odf_node.ports.sinks import BadRows, SinkContext, Told

LONG = "x" * 300_000  # three of them fit a file


def entry(number: int, rows: int, fails_behind: int | None = None) -> BadRows:
    def iter_rows() -> Iterator[dict[str, Any]]:
        for place in range(1, rows + 1):
            if fails_behind is not None and place > fails_behind:
                raise OSError("the disk is full")
            yield {"row": f"{number}.{place}", "original": LONG, "errors": []}

    return BadRows(
        node="n", dataset="d", dataset_id="i", entry=number, source="s", set_aside_at="t", row_count=rows, why=None,
        iter_rows=iter_rows,
    )  # fmt: skip


def names_in(path: Path) -> list[str]:
    return [json.loads(line)["row"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("fails_behind", [1, 3, 4, 7, 11])
def test_entry_that_fails_leaves_nothing_whichever_files_it_reached(tmp_path: Path, fails_behind: int) -> None:
    sink = File(File.Parameters(name="bad", megabytes=1), SinkContext(folder=tmp_path / "sinks" / "one"))
    folder = tmp_path / "sinks" / "one"
    for number in (1, 2):
        assert sink.deliver(entry(number, 3))[0] is Told.DONE
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: text.count(b"\n") for name, text in before.items()} == {"bad": 3, "bad.1": 3}
    with pytest.raises(OSError, match="full"):
        sink.deliver(entry(3, 12, fails_behind))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_entry_of_many_files_leaves_its_end_in_the_last_two_and_what_a_kill_left_goes(tmp_path: Path) -> None:
    folder = tmp_path / "sinks" / "one"
    folder.mkdir(parents=True)
    (folder / ".bad.part1").write_text("left")
    sink = File(File.Parameters(name="bad", megabytes=1), SinkContext(folder=folder))
    sink.deliver(entry(1, 11))
    assert sorted(path.name for path in folder.iterdir()) == ["bad", "bad.1"]
    assert (names_in(folder / "bad.1"), names_in(folder / "bad")) == (["1.7", "1.8", "1.9"], ["1.10", "1.11"])
    sink.deliver(entry(2, 2))
    assert (names_in(folder / "bad.1"), names_in(folder / "bad")) == (["1.10", "1.11", "2.1"], ["2.2"])
