"""Texts of strangers on their way to a terminal: names of columns, values, reasons of a peer, reports of a refusal."""

import io
import re

import pyarrow as pa
import pytest
from aiohttp import web
from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_failures import error_of_status
from odf_node.cli.console import Console, printable_line
from odf_node.cli.refusal_text import describe_cells
from odf_node.cli.rows import write_rows
from odf_protocol.errors import OdfError
from odf_protocol.exchange.messages import PROBLEM_MEDIA_TYPE, Problem, encode_message
from support.event_loop import in_loop
from support.http_server import serving

TEXTS = {
    "wipes-the-screen": "\x1b[2J\x1b[H",
    "renames-the-window": "\x1b]0;root\x07",
    "writes-to-the-clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "eight-bit-control": "\x9b31m",
    "goes-back": "\rok\x08\x08",
    "turns-around": "\u202etxt.exe\u2069\u200f",
    "fakes-a-line": "\nAccepted: all is well\n",
}
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


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
def test_cells_of_a_refusal_do_not_steer_the_terminal(text: str) -> None:
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
