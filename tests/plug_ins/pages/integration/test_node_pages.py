"""Pages with lineage, SQL, and what only the operator sees (PAGES-5, PAGES-12, PAGES-13, PAGES-15)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from odf_engines.ingest.quarantine import SCHEMA as QUARANTINE_SCHEMA
from odf_node.acceptance.offers import Proposal
from odf_node.derive.lineage import LineageDataset, LineageInput
from odf_node.keys.disputes import Disputes
from odf_node.records.quarantine import QuarantineFile
from odf_pages import query_service
from odf_pages.lineage_pages import draw
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.events import Seed
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop
from support.hidden_worlds import DERIVED_KEY, derived
from support.offers import NOW, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select
from support.page_reader import INSPECTOR, READER, PageReader, SeenPage, reading, require_harmless
from support.secretive_node import FRIEND_TOKEN, SHOWN_KEY, THIEF_TOKEN, SecretiveNode
from support.signing import dataset_of

INNER = ("/-/status", "/-/refusals", "/-/peers", "/-/datasets/shown.data/quarantine", "/-/refusals/unknown")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


def publisher_of(made: SecretiveNode) -> PublisherHome:
    return PublisherHome(Judge(made.node.home.folder, made.node.engines))


async def ask(reader: PageReader, query: str, status: int = 200, **fields: str) -> SeenPage:
    form = (await reader.get("/-/sql")).form_words()
    page = await reader.ask("POST", "/-/sql", data={**form, "query": query, **fields})
    assert page.status == status, page.text
    require_harmless(page)
    return page


@in_loop
async def test_pages_about_the_node_do_not_exist_for_other_tokens_pages_5(made: SecretiveNode) -> None:
    async with reading(made, "everyone") as stranger:
        reported = [(await stranger.get(path, 404)).text for path in INNER]
        assert all(each == reported[0] for each in reported)
    async with reading(made) as reader:
        await reader.sign_in(READER)
        reported = [(await reader.get(path, 404)).text for path in INNER]
        assert all(each == reported[0] for each in reported)
        overview = await reader.get("/-/datasets/shown.data")
        assert "/quarantine" not in overview.html
        assert "/-/status" not in overview.html
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for path in INNER[:-1]:
            require_harmless(await reader.get(path))
        await reader.get(INNER[-1], 404)


@in_loop
async def test_status_says_what_wants_doing_and_what_runs_pages_15(made: SecretiveNode) -> None:
    publisher_of(made).keep(root_chain(made.hidden.folder, slices=0, key=b"\x55" * 32, name="empty.data"))
    made.node.record("publish", "shown.data")
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        status = await reader.get("/-/status")
        assert "empty.data it has no rows, and no source of any odf-node change empty.data MANIFEST" in status.text
        assert "short queries of pages 0 0 long queries of pages 0 0" in status.text
        assert "publish shown.data" in status.text


@in_loop
async def test_proofs_against_datasets_are_shown_pages_15(made: SecretiveNode) -> None:
    chain = root_chain(made.hidden.folder, slices=1)
    forks = [chain.copy().add_rows([("Bern", n)]) for n in (1, 2)]
    store = made.node.store
    proof = prove_equivocation(EquivocationKind.HEADS, *(fork.signed_head() for fork in forks))
    assert Disputes(store).learn([proof.raw], chain.id, now=NOW) == 1
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await reader.get("/-/peers")
        assert "Not settled: frozen" in page.text
        assert "FROZEN" in (await reader.get("/")).text


@in_loop
async def test_heading_of_figures_stands_over_them_pages_13(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await ask(reader, "SELECT 'a' AS word, 1 AS figure, CAST(1.5 AS DECIMAL(3, 1)) AS other")
        looks = [attributes["class"] for tag, attributes in page.tags.tags if tag in {"th", "td"}]
        assert looks == ["words", "figure", "figure"] * 2


@in_loop
async def test_input_that_is_not_for_the_viewer_is_drawn_as_absent_pages_12(made: SecretiveNode) -> None:
    publisher_of(made).keep(derived(made.hidden, DERIVED_KEY, "derived.data"))
    async with reading(made, "everyone") as reader:
        page = await reader.get("/-/datasets/derived.data/lineage")
        require_harmless(page)
        assert "hidden.data" not in page.html
        assert f"{made.hidden.id}, not in this node" in page.text
        assert "SELECT 1" in page.text
    async with reading(made) as reader:
        await reader.sign_in(READER)
        page = await reader.get("/-/datasets/derived.data/lineage")
        assert "/-/datasets/hidden.data" in page.links
        assert "derived.data" in (await reader.get("/-/datasets/hidden.data/lineage")).text
        drawn = [tag for tag, _ in page.tags.tags if tag in {"rect", "path"}]
        assert (drawn.count("rect"), drawn.count("path")) == (2, 2)  # two boxes, a line and its tip


def dataset(number: int, *inputs: int) -> LineageDataset:
    ids = [DatasetId(bytes([each]) * 32) for each in (number, *inputs)]
    return LineageDataset(ids[0], f"d{number}", "own", None, tuple(LineageInput(each, "a") for each in ids[1:]))


def test_drawing_flows_to_the_right_and_boxes_do_not_overlap_pages_12() -> None:
    lineage = [dataset(1, 2, 3, 4), dataset(2, 4), dataset(3, 5), dataset(4, 5), dataset(5)]
    drawing = draw(lineage, lineage[0].dataset_id)
    places = {box.dataset.name: (box.x, box.y) for box in drawing.boxes}
    assert places["d5"][0] < places["d4"][0] < places["d2"][0] < places["d1"][0]
    assert len(set(places.values())) == len(lineage)
    assert len(drawing.lines) == 6
    assert [box.dataset.name for box in drawing.boxes if box.is_subject] == ["d1"]
    assert all(0 <= box.x < drawing.width and 0 <= box.y < drawing.height for box in drawing.boxes)


def test_ring_of_datasets_is_drawn_and_ends_pages_12() -> None:
    drawing = draw([dataset(1, 2), dataset(2, 1)], dataset_of(SHOWN_KEY))
    assert len(drawing.boxes) == 2
    assert drawing.width < 10_000


@in_loop
async def test_question_is_answered_over_what_the_viewer_may_read_pages_13(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        answered = await ask(reader, 'SELECT city, people FROM "hidden.data" ORDER BY people DESC LIMIT 1')
        assert "Rome 2800000" in answered.text
        assert "by datafusion" in answered.text
        assert '<option value="datafusion" selected>' in answered.html
        assert "engine 'other' is not installed" in (await ask(reader, "SELECT 1", 400, engine="other")).text
        none = await ask(reader, 'SELECT count(*) AS n FROM "hidden.data"', as_of="2024-05-01T11:00:00Z")
        assert "nint64 0" in none.text
        lack = await ask(reader, "SELECT <script> FROM", 400)
        assert "invalid query" in lack.text
        assert "expected as 2020-10-01T12:00:00Z" in (await ask(reader, "SELECT 1", 400, as_of="soon")).text
    async with reading(made) as reader:
        await reader.sign_in(THIEF_TOKEN)
        shown = await ask(reader, 'SELECT city FROM "shown.data"')
        assert "Bern" in shown.text
        reported = [(await ask(reader, f'SELECT * FROM "{name}"', 400)).text for name in ("hidden.data", "absent.data")]
        assert reported[0].replace("hidden", "absent") == reported[1]


@in_loop
async def test_answer_is_cut_with_a_word_about_it_pages_13(
    made: SecretiveNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_service, "MAX_ROWS", 2)
    monkeypatch.setattr(query_service, "MAX_COLUMNS", 3)
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await ask(reader, 'SELECT * FROM "hidden.data"')
        assert "Only the first" in page.text
        assert "of 6 columns are shown" in page.text
        assert "2 rows, by" in page.text


@in_loop
async def test_questions_need_a_session_and_its_form_pages_13(made: SecretiveNode) -> None:
    async with reading(made, "everyone") as reader:
        await reader.get("/-/sql", 404)
        assert (await reader.ask("POST", "/-/sql", data={"query": "SELECT 1"})).status == 404
        refused = await reader.ask(
            "POST", "/-/sql", data={"query": "SELECT 1"}, headers={"Authorization": f"Bearer {READER}"}
        )
        assert refused.status == 403
        await reader.sign_in(FRIEND_TOKEN)
        for form in ({}, {"form_word": "guessed"}):
            assert (await reader.ask("POST", "/-/sql", data={"query": "SELECT 1", **form})).status == 403


@in_loop
async def test_rejection_is_shown_with_the_cells_that_differ_pages_15(made: SecretiveNode) -> None:
    proposal = Proposal(
        name="cities<b>", source_url="http://peer.example/cities", base=None, blocks=[], signed_head=b""
    )
    cell = {"offset": 7, "key": "city=Oslo", "column": "people<i>", "published": "717710", "recomputed": None}
    report = {"divergence": {"cells": [cell], "differing_rows": 1}}
    reported = {"rule": "REPLAY-1 rows-differ", "reason": "1 row differs", "sequence_number": 4, "report": report}
    kept = made.node.refusals.keep(proposal=proposal, files={}, documents={}, now=NOW, **reported)
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        listed = await reader.get("/-/refusals")
        (link,) = [link for link in listed.links if link.startswith("/-/refusals/")]
        assert link == f"/-/refusals/{kept.report['id']}"
        page = await reader.get(link)
        require_harmless(page)
        assert "rows differ (REPLAY-1)" in page.text
        assert "7 city=Oslo people<i> 717710 null" in page.text
        assert "cities<b>, block 4" in page.text


@in_loop
async def test_quarantine_is_a_tab_of_own_roots_alone_as_nothing_else_is_ingested_pages_15(made: SecretiveNode) -> None:
    keeper, folder = publisher_of(made), made.hidden.folder
    derivative = PeerChain(folder, name="derived.data", key=b"\x56" * 32)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    keeper.keep(derivative.add(select("SELECT * FROM in0", made.hidden.id)))
    Judge(made.node.home.folder, made.node.engines).accept(
        root_chain(folder, slices=1, key=b"\x57" * 32, name="taken.data")
    )
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for name, has_tab in (("shown.data", True), ("derived.data", False), ("taken.data", False)):
            page = await reader.get(f"/-/datasets/{name}")
            assert (f"/-/datasets/{name}/quarantine" in page.html) == has_tab, name


@in_loop
async def test_rows_set_aside_are_shown_with_every_error_pages_15(made: SecretiveNode) -> None:
    node = made.node
    (record,) = [each for each in node.store.list_datasets() if each.name == "shown.data"]
    error = {"plug_in": "Range", "severity": "error", "code": "range", "column": "people", "expected": "0"}
    row = dict.fromkeys(QUARANTINE_SCHEMA.names) | {
        "record": 1,
        "line": 17,
        "stage": "validate",
        "original": '{"city": "<script>", "people": -1}',
        "columns": [],
        "errors": [error | {"message": "less than <i>0</i>", "value": "-1"}],
    }
    content = parquet_bytes(pa.Table.from_pylist([row], schema=QUARANTINE_SCHEMA))
    name = Multihash.of_sha3_256(content)
    with node.objects.writing(), node.objects.stage() as staged:
        staged.write(content)
        node.objects.put(staged, name)
    node.store.put_quarantine(
        QuarantineFile(
            dataset_id=record.id, sequence_number=2, object_hash=name, row_count=1, source="a<b>.json", created_at=NOW
        )
    )
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await reader.get("/-/datasets/shown.data/quarantine")
        require_harmless(page)
        assert "a<b>.json 1 of 1 row waiting" in page.text
        assert '{"city": "<script>", "people": -1}' in page.text
        assert "people: less than <i>0</i>, found -1 Range, range" in page.text
        assert "line 17" in page.text
        await reader.get("/-/datasets/shown.data/quarantine?entry=99", 400)
