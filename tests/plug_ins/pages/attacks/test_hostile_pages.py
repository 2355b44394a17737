"""Datasets whose every word would run, load or lead astray in a browser: pages show them, and stay small."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.event_loop import in_loop
from support.hostile_dataset import MEGABYTE, SCRIPT, hostile_chain, hostile_words
from support.offers import Judge, PublisherHome
from support.page_reader import INSPECTOR, reading, require_harmless
from support.secretive_node import SecretiveNode

MAX_PAGE_BYTES = 4 * MEGABYTE
TABS = ("", "/rows", "/rows/0", "/versions", "/versions/1", "/versions/2", "/trust", "/lineage", "/quarantine")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


def keep(made: SecretiveNode, columns: tuple[str, ...], cells: list[Any]) -> None:
    chain = hostile_chain(made.hidden.folder, columns, cells)
    PublisherHome(Judge(made.node.home.folder, made.node.engines)).keep(chain)


@in_loop
async def test_words_of_others_are_shown_and_do_nothing_pages_8(made: SecretiveNode) -> None:
    keep(made, *hostile_words())
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for tab in TABS:
            page = await reader.get(f"/-/datasets/hostile.data{tab}")
            require_harmless(page)
            assert not [link for link in page.links if "evil" in link or "alert" in link.split("?")[0]]
            assert all(sign not in page.html for sign in ("\u202e", "\u2066", "\x1b", "\x00", "\u200b", "\ufeff"))
        overview = await reader.get("/-/datasets/hostile.data")
        assert SCRIPT in overview.text
        assert "{{ 7*7 }}" in overview.text
        assert "U+202E" in overview.text
        rows = await reader.get("/-/datasets/hostile.data/rows")
        for word in (SCRIPT, "{{ 7*7 }}", "U+202E", "U+0000"):
            assert word in rows.text


@in_loop
async def test_words_of_whoever_asks_are_shown_and_do_nothing_pages_8(made: SecretiveNode) -> None:
    async with reading(made, "everyone") as reader:
        word = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE%22%00"
        for path in (
            f"/?find={word}",
            f"/?after={word}",
            f"/-/datasets/{word}",
            f"/-/datasets/shown.data/rows?from={word}",
            f"/-/datasets/shown.data/rows/0?key={word}&key=4",
            f"/-/datasets/shown.data/rows/{word}",
            f"/-/datasets/shown.data/versions/{word}",
            f"/-/sign-in?then={word}",
        ):
            page = await reader.ask("GET", path)
            assert page.status in {200, 400, 404}
            require_harmless(page)
            assert "\u202e" not in page.html


@in_loop
async def test_cells_of_many_megabytes_are_cut_pages_9(made: SecretiveNode) -> None:
    large = "x" * (10 * MEGABYTE)
    keep(made, ("small", "large"), [["a", "b", "c"], [large, None, large]])
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for tab in ("/rows", "/rows/0", "/rows/0?key=5"):
            page = await reader.get(f"/-/datasets/hostile.data{tab}")
            assert len(page.raw) < 100_000
            assert "more characters" in page.text
        assert f"{10 * MEGABYTE - 200:,} more characters" in (await reader.get("/-/datasets/hostile.data/rows")).text


@in_loop
async def test_cells_that_are_few_bytes_in_the_file_and_no_end_in_memory_are_rejected_pages_9(
    made: SecretiveNode,
) -> None:
    """A dictionary says a long text once, and thousands of cells name it."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * (2 * MEGABYTE)]))
    keep(made, ("bomb",), [texts])
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await reader.ask("GET", "/-/datasets/hostile.data/rows")
        assert page.status == 422
        assert "ROWS-6" in page.text
        assert len(page.raw) < 100_000
        await reader.get("/")


@in_loop
async def test_ten_thousand_columns_are_shown_some_at_a_time_pages_9(made: SecretiveNode) -> None:
    columns = tuple(f"column-{number}" for number in range(10_000))
    schema_fields = [["v"] for _ in columns]
    keep(made, columns, schema_fields)
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for tab in TABS:
            page = await reader.get(f"/-/datasets/hostile.data{tab}")
            assert len(page.raw) < MAX_PAGE_BYTES
        rows = await reader.get("/-/datasets/hostile.data/rows")
        assert "column-9" in rows.text
        assert "column-99" not in rows.text
        (further,) = [link for link in rows.links if "columns=30" in link]
        assert "column-30" in (await reader.get(further)).text
        assert "column-9999" in (await reader.get("/-/datasets/hostile.data/rows?columns=9990")).text
        assert "column-300" in (await reader.get("/-/datasets/hostile.data?columns=200")).text


@in_loop
async def test_long_pages_take_turns_and_the_rest_is_told_to_come_later_pages_14(made: SecretiveNode) -> None:
    async with reading(made, "everyone") as reader:
        asked = [reader.ask("GET", "/-/datasets/shown.data/rows") for _ in range(40)]
        quick = reader.ask("GET", "/info")
        *pages, info = await asyncio.gather(*asked, quick)
        assert {page.status for page in pages} == {200, 503}
        assert info.status == 200
        assert all("Retry-After" in page.headers for page in pages if page.status == 503)
