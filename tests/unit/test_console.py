"""What is shown, on which stream, and what strangers' texts cannot do to a terminal."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.cli.console import Console, ResultNotWrittenError, format_table, printable
from odf_node.ports.progress import Count


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FullDisk(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


class ClosedPipe(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture
def console() -> Console:
    return Console(out=io.StringIO(), err=io.StringIO())


def shown(console: Console) -> tuple[str, str]:
    assert isinstance(console.out, io.StringIO)
    assert isinstance(console.err, io.StringIO)
    return console.out.getvalue(), console.err.getvalue()


def test_results_and_remarks_go_to_streams_of_their_own(console: Console) -> None:
    console.text("result")
    console.note("remark")
    console.warn("danger")
    assert shown(console) == ("result\n", "remark\nwarning: danger\n")


def test_quiet_console_says_results_and_warnings_only() -> None:
    console = Console(quiet=True, out=io.StringIO(), err=io.StringIO())
    console.text("result")
    console.note("remark")
    console.warn("danger")
    console.table([], {"a": "A"}, empty="nothing")
    assert shown(console) == ("result\n", "warning: danger\n")


def test_table_is_as_wide_as_its_widest_cell_and_numbers_stand_right(console: Console) -> None:
    console.table([{"n": 5, "s": "long text"}, {"n": 12345, "s": None}], {"n": ">N", "s": "TEXT"})
    assert shown(console)[0].splitlines() == [
        "    N  TEXT",
        "-----  ---------",
        "    5  long text",
        "12345",
    ]


def test_table_without_rows_says_why_beside_the_result(console: Console) -> None:
    console.table([], {"a": "A"}, empty="nothing yet")
    assert shown(console) == ("", "nothing yet\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("over\rwritten", r"over\rwritten"),
        ("c1 \x9b2J", r"c1 \x9b2J"),
        ("turned \u202eround", r"turned \u202eround"),
        ("pay\u200bpal\U000e0041\u200d", r"pay\u200bpal\U000e0041\u200d"),
        ("क्\u200dष 👩\u200d🔬 ☕\ufe0f", "क्\u200dष 👩\u200d🔬 ☕\ufe0f"),
        ("two\nlines\tand ümläute 漢字", "two\nlines\tand ümläute 漢字"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(console: Console, text: str, expected: str) -> None:
    assert printable(text) == expected
    console.text(text)
    console.note(text)
    set_in = expected.replace("\n", "\n  ")  # what is quoted begins no line like ours
    assert shown(console) == (f"{expected}\n", f"{set_in}\n")


def test_cell_of_a_table_stays_on_its_line(console: Console) -> None:
    console.table([{"a": "one\ntwo\x1b[2J"}], {"a": "A"})
    assert shown(console)[0].splitlines()[2] == r"one\ntwo\x1b[2J"


def test_json_keeps_every_text_and_holds_no_control_characters(console: Console) -> None:
    value = {"text": "a\x1b\x7f\x9b\u202e\U000e0041\u200bb ü", "none": None}
    console.json(value)
    written = shown(console)[0]
    assert json.loads(written) == value
    assert printable(written) == written
    assert "ü" in written


def test_stream_that_is_not_in_unicode_gets_escapes() -> None:
    raw = io.BytesIO()
    console = Console(out=io.TextIOWrapper(raw, encoding="ascii"))
    console.text("ü")
    console.json({"a": "ü"}, indent=None)
    console.flush()
    first, second = raw.getvalue().decode("ascii").splitlines()
    assert first == r"\xfc"
    assert json.loads(second) == {"a": "ü"}


def test_raw_result_is_left_alone_unless_a_terminal_shows_it() -> None:
    for stream, expected in ((io.StringIO(), "\x1b[2J\r\n"), (Terminal(), "\\x1b[2J\\r\n")):
        Console(out=stream).raw("\x1b[2J\r\n")
        assert stream.getvalue() == expected


def test_result_that_finds_no_room_is_an_error_and_a_reader_that_left_is_not_hidden() -> None:
    with pytest.raises(ResultNotWrittenError, match="cannot write the result: No space left on device"):
        Console(out=FullDisk()).text("x")
    with pytest.raises(BrokenPipeError):
        Console(out=ClosedPipe()).text("x")


def test_progress_moves_on_a_terminal_and_wipes_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("odf_node.cli.progress.REDRAW_S", 0)
    console = Console(out=io.StringIO(), err=Terminal())
    with console.progress("pulling\x1b[2J") as progress:
        progress.on_progress("fetching")
        progress.expect(2_000_000)
        progress.advance(1_000_000)
        progress.on_progress("checking")
    text = shown(console)[1]
    assert r"pulling\x1b[2J" in text
    assert "1.0 MB of 2.0 MB" in text
    # What comes after the transfer is not measured in its bytes.
    assert "checking [" not in text
    assert text.endswith("\r")


@pytest.mark.parametrize("asked", [{"quiet": True}, {"has_progress": False}], ids=["quiet", "for-a-program"])
def test_progress_is_silent_on_a_terminal_that_asked_for_silence(
    asked: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    silent = Console(**asked, out=io.StringIO(), err=Terminal())
    with silent.progress("pulling") as progress:
        progress.on_progress("checking rows", Count(1, 2, "rows"))
    assert shown(silent)[1] == ""


def test_progress_is_silent_where_nobody_watches(console: Console) -> None:
    with console.progress("pulling") as progress:
        progress.expect(10)
        progress.advance(10)
        progress.on_progress("still")
    assert shown(console) == ("", "")


def test_lines_of_a_table_are_made_as_they_are_asked_for() -> None:
    lines: Iterator[str] = iter(format_table([{"a": 1}], {"a": "A"}))
    assert next(lines) == "A"


# Rows in files


def test_file_for_a_result_is_never_replaced_and_never_half_written(tmp_path: Path) -> None:
    import pyarrow as pa

    from odf_node.cli.rows import write_rows
    from odf_node.errors import UsageError

    console = Console(out=io.StringIO(), err=io.StringIO())
    rows = pa.table({"n": [1, 2]})
    path = tmp_path / "rows.csv"
    write_rows(console, rows, "csv", path=path)
    assert path.read_text() == '"n"\n1\n2\n'
    with pytest.raises(UsageError, match="is there already"):
        write_rows(console, rows, "csv", path=path)
    with pytest.raises(UsageError, match="there is no folder"):
        write_rows(console, rows, "csv", path=tmp_path / "none" / "rows.csv")
    assert path.read_text() == '"n"\n1\n2\n'


def test_rows_are_written_with_exact_values_in_every_text_format() -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    import pyarrow as pa

    from odf_node.cli.rows import write_rows

    rows = pa.table(
        {
            "op": pa.array([2], pa.int32()),
            "at": pa.array([datetime(2020, 1, 2, 3, 4, 5, 600_000, UTC)], pa.timestamp("ms", "UTC")),
            "day": pa.array([date(2020, 1, 2)]),
            "amount": pa.array([Decimal("1.10")]),
            "raw": pa.array([b"\xff"]),
            "none": pa.array([None], pa.string()),
        }
    )
    shown_as = {}
    for kind in ("table", "json", "ndjson"):
        console = Console(out=io.StringIO(), err=io.StringIO())
        write_rows(console, rows, kind)
        shown_as[kind] = shown(console)[0]
    expected = {
        "op": 2, "at": "2020-01-02T03:04:05.600Z", "day": "2020-01-02", "amount": "1.10", "raw": "ff", "none": None,
    }  # fmt: skip
    assert json.loads(shown_as["json"]) == [expected]
    assert json.loads(shown_as["ndjson"]) == expected
    assert shown_as["table"].splitlines()[2].split() == [
        "2", "2020-01-02T03:04:05.600Z", "2020-01-02", "1.10", "ff", "null",
    ]  # fmt: skip


def test_operations_are_named_for_people() -> None:
    import pyarrow as pa

    from odf_node.cli.rows import name_operations

    named = name_operations(pa.table({"op": pa.array([0, 1, 2, 3], pa.int32())}))
    assert named.column("op").to_pylist() == ["append", "retract", "correct from", "correct to"]
    other = pa.table({"op": pa.array([0, 9], pa.int32())})
    assert name_operations(other) is other


def test_table_fits_a_terminal_and_what_is_cut_has_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    console = Console(out=Terminal(), err=io.StringIO())
    rows = [{"n": 5, "name": "a" * 30, "s": "b" * 60}, {"n": 12345, "name": "short", "s": None}]
    console.table(rows, {"n": ">N", "name": "NAME", "s": "TEXT"})
    lines = shown(console)[0].splitlines()
    assert max(map(len, lines)) == 40
    assert lines[2] == f"    5  {'a' * 12}...  {'b' * 13}..."
    assert lines[3] == "12345  short"


def test_table_on_a_narrow_terminal_still_shows_something_of_each_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    console = Console(out=Terminal(), err=io.StringIO())
    console.table([{"a": "a" * 30, "b": "b" * 30}], {"a": "A", "b": "B"})
    assert shown(console)[0].splitlines()[2] == "aaaaa...  bbbbb..."


def test_names_are_cut_after_what_stands_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    console = Console(out=Terminal(), err=io.StringIO())
    rows = [{"name": f"countries.{end}", "at": "b" * 40, "kind": "c" * 20} for end in ("daily", "severity")]
    console.table(rows, {"name": "NAME", "at": "AT", "kind": "KIND"})
    lines = shown(console)[0].splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["countries.daily", "countries.severity"]
    assert max(map(len, lines)) == 60


def test_line_that_is_longer_than_a_terminal_goes_on_below_with_its_words_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    console = Console(out=Terminal(), err=io.StringIO())
    text = f"  5  bad5af27  AddData +3 rows  read-4, merge 0.2 s, {'x' * 60}"
    console.line(text)
    assert shown(console)[0].splitlines() == [
        "  5  bad5af27  AddData +3 rows  read-4, merge 0.2",
        "      s,",
        f"      {'x' * 60}",
    ]
    piped = Console(out=io.StringIO(), err=io.StringIO())
    piped.line(text)
    assert piped.out.getvalue() == f"{text}\n"  # type: ignore[attr-defined]


def test_table_that_goes_to_a_program_or_is_wanted_whole_is_not_cut(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    console.table([{"a": "a" * 30}], {"a": "A"})
    terminal = Console(out=Terminal(), err=io.StringIO())
    terminal.table([{"a": "a" * 30}], {"a": "A"}, is_whole=True)
    assert shown(console)[0] == shown(terminal)[0]
    assert "a" * 30 in shown(console)[0]


def test_columns_stay_where_they_are_whatever_letters_are_in_them() -> None:
    """Letters of East Asia take two columns of a terminal, marks above letters none."""
    rows = [{"a": "\u6771\u4eac", "b": 1}, {"a": "e\u0301", "b": 2}, {"a": "abcde", "b": 3}]
    lines = list(format_table(rows, {"a": "A", "b": ">B"}))
    assert lines[2:] == ["\u6771\u4eac   1", "e\u0301      2", "abcde  3"]
    narrow = [line.rstrip() for line in format_table([{"a": "\u6771\u4eac\u90fd\u5e81\u820e"}], {"a": "A"}, 8)]
    assert narrow[2] == "\u6771\u4eac..."
