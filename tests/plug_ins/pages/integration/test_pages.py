"""Pages of a served node over a real socket: what they show, to whom, and what guards them."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from odf_node.configuration import Configuration
from odf_node.http.callers import secret_hash_of
from odf_node.records.access import AccessToken
from odf_node.row_counts import RowCounts
from odf_pages.requests import LASTS_S, MAX_OF_ONE, MAX_SESSIONS, Sessions
from odf_protocol.events import SetAttachments, SetInfo
from odf_protocol.events.metadata import AttachmentEmbedded, AttachmentsEmbedded
from support.event_loop import in_loop
from support.offers import CITIES, NOW, PublisherHome, root_chain
from support.page_reader import INSPECTOR, READER, reading, require_harmless
from support.secretive_node import FRIEND_TOKEN, SHOWN_KEY, THIEF_TOKEN, Judge, SecretiveNode

PAGES = ("/", "/-/datasets/shown.data", "/-/datasets/shown.data/rows", "/-/datasets/shown.data/rows/0")
PAGES += ("/-/datasets/shown.data/versions", "/-/datasets/shown.data/versions/2", "/-/datasets/shown.data/trust")
NOWHERE = ("/-/nowhere", "/nowhere")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


def publisher_of(made: SecretiveNode) -> PublisherHome:
    return PublisherHome(Judge(made.node.home.folder, made.node.engines))


@in_loop
async def test_stranger_gets_the_answer_to_an_address_that_is_nowhere_pages_2(made: SecretiveNode) -> None:
    for setting in ("off", "token"):
        async with reading(made, setting) as reader:
            for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
                reported = []
                for path in (*NOWHERE, *PAGES, "/-/datasets/absent.data", "/-/sign-out"):
                    for cookies in ({}, {f"odf_node_{reader.url.rpartition(':')[2]}": "guessed"}):
                        page = await reader.ask(method, path, cookies=cookies)
                        word = page.headers["X-Request-Id"].encode()
                        kept = {n: v for n, v in page.headers.items() if n.lower() not in {"date", "x-request-id"}}
                        reported.append((page.status, kept, page.raw.replace(word, b"ID")))
                        assert page.status == 404
                assert reported == [reported[0]] * len(reported)


@in_loop
async def test_nothing_is_shown_to_anybody_where_pages_are_off_pages_1(made: SecretiveNode) -> None:
    async with reading(made, "off") as reader:
        for path in (*PAGES, "/-/sign-in", "/-/pages.css", "/-/pages.js", "/-/sign-out"):
            for headers in ({}, {"Authorization": f"Bearer {INSPECTOR}"}):
                assert (await reader.ask("GET", path, headers=headers)).status == 404
                assert (await reader.ask("POST", path, headers=headers)).status == 404


@in_loop
async def test_whoever_signs_in_sees_what_the_token_may_read_pages_3(made: SecretiveNode) -> None:
    for token, sees_hidden in ((READER, True), (INSPECTOR, True), (FRIEND_TOKEN, True), (THIEF_TOKEN, False)):
        async with reading(made) as reader:
            begun = await reader.sign_in(token)
            assert (begun.status, begun.headers["Location"]) == (303, "/")
            cookie = next(each for each in begun.headers.getall("Set-Cookie") if "_form" not in each)
            assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={int(LASTS_S)}"} <= set(cookie.split("; "))
            listed = await reader.get("/")
            assert "shown.data" in listed.text
            assert ("hidden.data" in listed.text) is sees_hidden
            await reader.get("/-/datasets/hidden.data", 200 if sees_hidden else 404)
            await reader.get("/-/datasets/hidden.data/rows", 200 if sees_hidden else 404)
            for page in PAGES:
                require_harmless(await reader.get(page))


@in_loop
async def test_bearer_token_opens_pages_without_a_session_pages_3(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        page = await reader.get("/", headers={"Authorization": f"Bearer {READER}"})
        assert "hidden.data" in page.text
        await reader.get("/", 404, headers={"Authorization": "Bearer unknown"})


@in_loop
async def test_everyone_sees_what_a_stranger_may_read_pages_2(made: SecretiveNode) -> None:
    async with reading(made, "everyone") as reader:
        assert "hidden.data" not in (await reader.get("/")).html
        assert "Oslo" not in (await reader.get("/-/datasets/shown.data/rows")).text
        assert "Bern" in (await reader.get("/-/datasets/shown.data/rows")).text
        reported = []
        for name in ("hidden.data", "absent.data", str(made.hidden.id), "no%20name", "did:odf:zz"):
            for path in ("", "/rows", "/rows/0", "/versions", "/versions/0", "/trust"):
                page = await reader.get(f"/-/datasets/{name}{path}", 404)
                reported.append((page.html, page.headers.get("Content-Length")))
        assert all(each == reported[0] for each in reported)
    async with reading(made, "everyone", anonymous=False) as reader:
        assert "shown.data" not in (await reader.get("/")).html


@in_loop
async def test_revoked_token_ends_its_sessions_pages_4(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        await reader.get("/")
        made.node.store.revoke_token(READER[4:9], NOW)
        await reader.get("/", 404)
        again = await reader.sign_in(READER)
        assert again.status == 403
        assert "unknown, expired or revoked" in again.text


@in_loop
async def test_sign_out_ends_the_session_pages_4(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        cookies = {each.key: each.value for each in reader.session.cookie_jar}
        form = (await reader.get("/")).form_words()
        assert (await reader.ask("POST", "/-/sign-out", data=form)).status == 303
        await reader.get("/", 404)
        # The cookie itself opens nothing any more, whoever kept it.
        await reader.get("/", 404, cookies=cookies)


@in_loop
async def test_form_that_was_not_shown_to_the_sender_does_nothing_pages_6(made: SecretiveNode) -> None:
    async with reading(made) as reader, reading(made) as other:
        await reader.sign_in(READER)
        await other.sign_in(INSPECTOR)
        foreign = (await other.get("/")).form_words()
        for form in ({}, {"form_word": ""}, {"form_word": "é"}, foreign):
            refused = await reader.ask("POST", "/-/sign-out", data=form)
            assert refused.status == 403
            await reader.get("/")
        for form in ({"token": READER}, {**foreign, "token": READER}):
            refused = await other.ask("POST", "/-/sign-in", data=form)
            assert refused.status == 403
            assert "Set-Cookie" in refused.headers
            assert all("_form" in each for each in refused.headers.getall("Set-Cookie"))


@in_loop
async def test_form_of_a_page_of_another_origin_does_nothing_pages_6(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        form = (await reader.get("/")).form_words()
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await reader.ask("POST", "/-/sign-out", data=form, headers=headers)).status == 403
        await reader.get("/")


@in_loop
async def test_sign_in_goes_on_to_pages_of_this_node_alone_pages_6(made: SecretiveNode) -> None:
    for then, goes in (
        ("/-/datasets/shown.data/rows?from=3", "/-/datasets/shown.data/rows?from=3"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/-/\r\nSet-Cookie: a=b", "/"),
    ):
        async with reading(made) as reader:
            assert (await reader.sign_in(READER, then=then)).headers["Location"] == goes


@in_loop
async def test_every_answer_has_the_guarding_headers_pages_7(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        for path in (
            *PAGES,
            "/-/sign-in",
            "/-/pages.css",
            "/-/pages.js",
            "/-/datasets/absent.data",
            "/-/datasets/a/rows/x",
        ):
            page = await reader.ask("GET", path)
            assert page.headers["Content-Security-Policy"] == (
                "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
                "frame-ancestors 'none'; base-uri 'none'"
            )
            assert page.headers["X-Content-Type-Options"] == "nosniff"
            assert page.headers["Referrer-Policy"] == "same-origin"
            assert page.headers["Cache-Control"] == "no-store"
            head = await reader.ask("HEAD", path)
            assert (head.status, head.raw) == (page.status, b"")


@in_loop
async def test_dataset_pages_show_what_it_declares_pages_9(made: SecretiveNode) -> None:
    chain = root_chain(made.hidden.folder, name="hidden.data")
    chain.add(SetInfo(description="Cities of Europe", keywords=("cities", "people")))
    readme = AttachmentEmbedded(path="README.md", content="# Cities")
    chain.add(SetAttachments(attachments=AttachmentsEmbedded(items=(readme,))))
    publisher_of(made).keep(chain)
    async with reading(made) as reader:
        await reader.sign_in(READER)
        overview = await reader.get("/-/datasets/hidden.data")
        for shown in (
            "Cities of Europe",
            "cities",
            "people",
            "Option<String>",
            "README.md",
            "# Cities",
            str(chain.id),
            "own",
        ):
            assert shown in overview.text
        counts = RowCounts(added=2, corrected=1, quarantined=4).to_json()
        made.node.store.note_stages(chain.id, 2, [], counts)
        versions = await reader.get("/-/datasets/hidden.data/versions")
        assert "AddData +3 rows: 2 rows added, 1 corrected, 4 quarantined" in versions.text
        assert len([link for link in versions.links if "/versions/" in link]) == len(chain.blocks)
        block = await reader.get("/-/datasets/hidden.data/versions/2")
        assert "kind: AddData" in block.text
        assert str(chain.blocks[2].hash) in block.text
        await reader.get("/-/datasets/hidden.data/versions/99", 400)


@in_loop
async def test_rows_are_shown_as_of_any_version_pages_10(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        place = "/-/datasets/hidden.data/rows"
        newest = (await reader.get(place)).text
        assert all(city in newest for city, _ in CITIES if city)
        assert "Turin" in newest
        assert "append" in newest
        before = (await reader.get(f"{place}?block=2")).text
        assert "Oslo" in before
        assert "Turin" not in before
        # A slider counts its steps, of which each is a version here.
        assert "Turin" not in (await reader.get(f"{place}?version=2")).text
        assert "Turin" in (await reader.get(f"{place}?version=3")).text
        assert "no rows then" in (await reader.get(f"{place}?block=1")).text
        some = (await reader.get(f"{place}?from=2")).text
        assert ("Oslo" in some, "Vaduz" in some) == (False, True)
        assert (await reader.get(f"{place}?from=900")).status == 200
        for wrong in ("?from=x", "?block=99", "?from=-1", "?columns=1e3"):
            await reader.get(f"{place}{wrong}", 400)


@in_loop
async def test_history_of_a_row_has_every_row_of_its_key_pages_11(made: SecretiveNode) -> None:
    chain = root_chain(made.hidden.folder, name="hidden.data")
    chain.add_rows([("Oslo", 717_710), ("Oslo", 720_000)], op=[2, 3])
    publisher_of(made).keep(chain)
    async with reading(made) as reader:
        await reader.sign_in(READER)
        place = "/-/datasets/hidden.data/rows/0"
        alone = await reader.get(place)
        assert "720000" not in alone.text
        history = await reader.get(f"{place}?key=4")
        assert all(word in history.text for word in ("717710", "720000", "correct from", "correct to", "append"))
        assert "Rome" not in history.text
        nothing = await reader.get("/-/datasets/hidden.data/rows/4?key=4")
        assert "null" in nothing.text
        await reader.get(f"{place}?key=6", 400)
        await reader.get(f"{place}?key=city", 400)
        await reader.get("/-/datasets/hidden.data/rows/999", 400)


@in_loop
async def test_rows_that_nobody_compared_with_their_blocks_are_not_shown_pages_9(made: SecretiveNode) -> None:
    """Of a copy that was taken without a look at its rows (PART-12)."""
    made.node.store.mark_absent(made.hidden.id, made.files)
    async with reading(made) as reader:
        await reader.sign_in(READER)
        for path in ("rows", "rows/0", "rows/0?key=4"):
            page = await reader.get(f"/-/datasets/hidden.data/{path}", 404)
            assert "lacks" in page.text
            assert "Oslo" not in page.text


@in_loop
async def test_list_goes_on_by_pages_and_finds_by_name_pages_9(
    made: SecretiveNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odf_pages.dataset_pages.PAGE_DATASETS", 1)
    async with reading(made) as reader:
        await reader.sign_in(READER)
        first = await reader.get("/")
        assert ("hidden.data" in first.text, "shown.data" in first.text) == (True, False)
        (following,) = [link for link in first.links if "after=" in link]
        assert "shown.data" in (await reader.get(following)).text
        found = await reader.get("/?find=SHOW")
        assert ("hidden.data" in found.text, "shown.data" in found.text) == (False, True)


@in_loop
async def test_setting_is_read_at_each_request_pages_1(made: SecretiveNode) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        await reader.get("/")
        closed = replace(Configuration().access, pages="off")
        reader.live.configuration = replace(reader.live.configuration, access=closed)
        await reader.get("/", 404)


def test_sessions_end_by_themselves_and_do_not_fill_the_memory_pages_4() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    words = [sessions.begin(b"one") for _ in range(MAX_OF_ONE + 1)]
    assert [sessions.find(word) is None for word in words] == [True, *[False] * MAX_OF_ONE]
    others = [sessions.begin(str(number).encode()) for number in range(MAX_SESSIONS)]
    assert sum(sessions.find(word) is not None for word in words + others) == MAX_SESSIONS
    now[0] = LASTS_S
    assert all(sessions.find(word) is None for word in others)
    assert sessions.find("") is None


def test_token_for_inspection_reads_everything_and_pushes_nothing_pages_5(made: SecretiveNode) -> None:
    token, secret = made.node.tokens.create("me", datasets=(), expires_at=None, inspects=True)
    assert token.scopes == ("inspect",)
    kept = made.node.store.find_token(secret_hash_of(secret))
    assert isinstance(kept, AccessToken)
    assert SHOWN_KEY
