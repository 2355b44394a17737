"""Untrusted texts on their way to a terminal: names of columns, values, reasons of a peer, reports of a rejection."""

import argparse
import io
import json
import logging
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from aiohttp import web
from wcwidth import wcswidth
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_failures import error_of_status
from odf_node.cli.console import Console, format_table, printable_line
from odf_node.cli.explaining import explained
from odf_node.cli.rejection_text import describe_cells, describe_rejection
from odf_node.cli.rows import write_rows
from odf_node.cli.run import report_failure
from odf_node.home_folder import HomeFolder
from odf_protocol.errors import OdfError
from odf_protocol.exchange.messages import PROBLEM_MEDIA_TYPE, Problem, encode_message
from odf_protocol.in_toto import BlockRef
from odf_protocol.judging import BundleDocument, DocumentSort, encode_bundle
from odf_protocol.verification_statements import Checked, sign_verification
from odf_protocol.verification_statements import VerificationProblem as FoundProblem
from support.command_line import run_command
from support.event_loop import in_loop
from support.http_server import serving
from support.signing import DATASET_KEY, NODE_KEY, NOON, dataset_of, did_key_of, some_hash

TEXTS = {
    "wipes-the-screen": "\x1b[2J\x1b[H",
    "renames-the-window": "\x1b]0;root\x07",
    "writes-to-the-clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "eight-bit-control": "\x9b31m",
    "goes-back": "\rok\x08\x08",
    "turns-around": "\u202etxt.exe\u2069\u200f",
    "looks-like-another": "pay\u200bpal\U000e0041\ufeff\u3164",
    "fakes-a-line": "\nAccepted: all is well\n",
}
STEERS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("output_format", ["table", "csv", "json", "ndjson"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_name_of_a_column_and_its_values_do_not_steer_the_terminal(text: str, output_format: str) -> None:
    console = Console(out=Terminal(), err=Terminal())
    rows = pa.table({text: pa.array([text], pa.string()), f"number{text}": pa.array([1], pa.int32())})
    write_rows(console, rows, output_format)
    assert isinstance(console.out, io.StringIO)
    shown = console.out.getvalue()
    assert not STEERS.search(shown)
    assert "number" in shown
    if output_format == "table":
        assert len(shown.splitlines()) == 3


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_cells_of_a_rejection_do_not_steer_the_terminal(text: str) -> None:
    cell = {"offset": 0, "key": text, "column": text, "published": text, "recomputed": text}
    report = {"divergence": {"cells": [cell], "differing_rows": 1}}
    lines = [printable_line(line) for line in describe_cells(report)]
    assert len(lines) == 5
    assert not any(STEERS.search(line) or "\n" in line for line in lines)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@in_loop
async def test_reason_that_a_peer_gives_stays_on_its_line(text: str) -> None:
    problem = Problem(detail=f"no{text}really", rule=f"EX-1{text}", status=422)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=422, body=encode_message(problem), content_type=PROBLEM_MEDIA_TYPE)

    async with serving(answer) as server, HttpClient(ClientSettings(attempts=1)) as client:
        got = await client.ask("GET", URL(server.base))
        error = error_of_status(server.base, got.status, "dataset", got.body, got.content_type)
    assert isinstance(error, OdfError)
    console = Console(out=Terminal(), err=Terminal())
    console.warn(str(error))
    assert isinstance(console.err, io.StringIO)
    shown = console.err.getvalue()
    assert not STEERS.search(shown)
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_line_with_words_of_a_stranger_is_one_line(text: str) -> None:
    console = Console(out=Terminal(), err=Terminal())
    console.line(f"  reads cities as {text} (did:odf:x)")
    assert isinstance(console.out, io.StringIO)
    shown = console.out.getvalue()
    assert not STEERS.search(shown)
    assert len(shown.splitlines()) == 1


def test_statement_in_a_bundle_does_not_look_like_what_is_proved(tmp_path: Path) -> None:
    """Whoever sends evidence would have its reader believe that an honest key contradicted itself."""
    honest, dataset = did_key_of(DATASET_KEY), dataset_of(DATASET_KEY)
    says = f"bad\nPROVED: the key {honest} contradicted itself about {dataset}\n  proved     {honest}: two histories"
    ref = BlockRef(3, some_hash("a"))
    raw = sign_verification(
        NODE_KEY,
        dataset_id=dataset,
        first=ref,
        last=ref,
        checked=Checked(blocks=1, slices=1, slices_in_range=1, rows=1, steps=0, steps_in_range=0),
        problem=FoundProblem("ROWS-5", says),
        time=NOON,
    )
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(encode_bundle([BundleDocument(DocumentSort.STATEMENT, raw)]))
    reported = run_command(tmp_path / "home", "judge", bundle)
    lines = reported.stdout.splitlines()
    assert (reported.returncode, lines[0]) == (0, "Nothing in this file proves that anybody contradicted himself.")
    assert len(lines) == 2
    assert str(did_key_of(NODE_KEY)) in lines[1]
    assert not (tmp_path / "home").exists()


class CarelessError(OdfError):
    """An error that quotes somebody without care."""


STATES = "no\nAccepted: all is well\r\nodf-node pull: done\x85again"


@pytest.mark.parametrize("tell", ["note", "warn", "failure"])
def test_line_ends_in_what_others_said_begin_no_line_of_ours(tell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if tell == "failure":
        report_failure("pull", CarelessError(STATES))
    else:
        getattr(Console(out=sys.stdout, err=sys.stderr), tell)(STATES)
    first, *others = capsys.readouterr().err.splitlines()
    assert first.endswith("no")
    assert len(others) == 2
    assert all(line.startswith("  ") for line in others)


def test_line_ends_in_what_others_said_begin_no_line_of_a_log(tmp_path: Path) -> None:
    def run() -> int:
        logging.getLogger("odf_node.test").warning(
            "a peer says %s", f"{STATES}\n2026-01-01T00:00:00.000Z odf_node fine"
        )
        return 0

    explained("pull", argparse.Namespace(log_file=str(tmp_path / "log"), verbose=False), run)
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 6
    assert [line.startswith("  ") for line in lines] == [False, False, True, True, True, False]


def test_kept_rejection_is_shown_line_by_line(tmp_path: Path) -> None:
    report = {"dataset": "cities", "source": "http://a/\nPROVED: b", "rule": "CHAIN-1", "reason": "x", "found": "y\nz"}
    report |= {"expected": "\x1b[2J", "id": "f1" * 8, "block": 3, "refusedAt": "2026-01-01T00:00:00Z"}
    home = HomeFolder(tmp_path / "home")
    home.create()
    kept = home.staging / "refused" / str(report["id"])
    kept.mkdir(parents=True)
    (kept / "report.json").write_text(json.dumps(report))
    reported = run_command(home.path, "inspect", "refusals", "f1")
    assert reported.returncode == 0, reported.stderr
    assert not STEERS.search(reported.stdout)
    assert len(reported.stdout.splitlines()) == len(describe_rejection(report))


@pytest.mark.parametrize("sign", ["\u0301", "\u200d", "\u3042", "a"], ids=["marks", "joiners", "wide", "narrow"])
def test_cell_of_a_million_signs_takes_a_line_of_the_terminal_at_most(sign: str) -> None:
    (_, _, line) = format_table([{"a": f"x{sign * 1_000_000}", "b": "end"}], {"a": "A", "b": "B"}, 80)
    assert line.endswith("end")
    assert len(line) < 1000


@pytest.mark.parametrize("sign", ["\u3042", "x"], ids=["wide", "narrow"])
def test_progress_of_a_wide_name_stays_on_its_line(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    console = Console(out=Terminal(), err=Terminal())
    with console.progress(sign * 100) as progress:
        progress.on_progress(sign * 90)
    assert isinstance(console.err, io.StringIO)
    drawn = [each for each in console.err.getvalue().split("\r") if each.strip()]
    assert drawn
    assert all(wcswidth(each) < 60 for each in drawn)
