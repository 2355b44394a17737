"""Datasets whose every word would run, load or lead astray in a browser: pages show them, and stay small."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeOption,
    DataTypeString,
    MergeStrategyLedger,
    ReadStepNdJson,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
)
from odf_protocol.events.metadata import AttachmentEmbedded, AttachmentsEmbedded
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.schema_system import system_fields
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.event_loop import in_loop
from support.offers import NOON, Judge, PeerChain, PublisherHome, parquet_bytes
from support.page_reader import INSPECTOR, reading, require_harmless
from support.secretive_node import SecretiveNode
from support.signing import OTHER_KEY

SCRIPT = "<script>alert(1)</script>"
BROKEN_OUT = "\"'--></td></table></title></textarea><svg onload=alert(1)><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}"
TURNED = "invoice\u202efdp.exe\u2066\x1b[2J\x00\x7f\u200b\ufeff"
WORDS = (
    SCRIPT,
    BROKEN_OUT,
    TURNED,
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example",
)
MEGABYTE = 1024 * 1024
MOST_PAGE_BYTES = 4 * MEGABYTE
TABS = ("", "/rows", "/rows/0", "/versions", "/versions/1", "/versions/2", "/trust", "/lineage", "/quarantine")


def field(name: str) -> DataField:
    return DataField(name=name, type=DataTypeOption(inner=DataTypeString()))


def hostile_chain(folder: Path, columns: tuple[str, ...], cells: list[Any]) -> PeerChain:
    """A root whose metadata and rows are these; a list of cells a column."""
    schema = DataSchema(fields=(*system_fields(Vocabulary()), *map(field, columns)))
    chain = PeerChain(folder, key=OTHER_KEY, name="hostile.data")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT))
    chain.add(SetInfo(description=" ".join(WORDS), keywords=WORDS))
    chain.add(SetLicense(short_name=SCRIPT, name=BROKEN_OUT, spdx_id=SCRIPT, website_url="javascript:alert(1)"))
    items = tuple(AttachmentEmbedded(path=word, content=word) for word in WORDS)
    chain.add(SetAttachments(attachments=AttachmentsEmbedded(items=items)))
    merge = MergeStrategyLedger(primary_key=(columns[0],))
    chain.add(AddPushSource(source_name=SCRIPT, read=ReadStepNdJson(), merge=merge))
    chain.add(SetDataSchema(schema=schema))
    count, at = len(cells[0]), Timestamp(NOON.seconds + len(chain.blocks))
    system = {
        "offset": [*range(count)],
        "op": [0] * count,
        "system_time": [at.unix_ms] * count,
        "event_time": [0] * count,
    }
    arrow = arrow_schema_of(schema)
    if isinstance(cells[0], pa.DictionaryArray):
        arrow = arrow.set(len(system), pa.field(columns[0], cells[0].type))
    arrays = [pa.array(values, pa.int64()).cast(arrow.field(name).type) for name, values in system.items()]
    texts = [column if isinstance(column, pa.Array) else pa.array(column, pa.string()) for column in cells]
    content = parquet_bytes(
        pa.Table.from_arrays([*arrays, *texts], schema=arrow),
        dictionary_pagesize_limit=16 * MEGABYTE,
        store_schema=False,
    )
    # What the rows hash to is nothing that pages look at.
    return chain.add_slice(content, rows=count, logical_hash=Multihash(ARROW0_SHA3_256, bytes(32)))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


def keep(made: SecretiveNode, columns: tuple[str, ...], cells: list[Any]) -> None:
    chain = hostile_chain(made.hidden.folder, columns, cells)
    PublisherHome(Judge(made.node.home, made.node.engines)).keep(chain)


@in_loop
async def test_words_of_others_are_shown_and_do_nothing_pages_8(made: SecretiveNode) -> None:
    columns = (SCRIPT, BROKEN_OUT, TURNED.replace("\x00", ""), "javascript:alert(1)")
    keep(made, columns, [[*WORDS] for _ in columns])
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
async def test_cells_that_are_few_bytes_in_the_file_and_no_end_in_memory_are_refused_pages_9(
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
            assert len(page.raw) < MOST_PAGE_BYTES
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
