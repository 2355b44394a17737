"""Forms, cookies and sessions of a node's pages, tried by other pages, other sessions and neighbours of its name.

Source: clauses PAGES-3, PAGES-4, PAGES-6 and PAGES-7 in ``spec/plug-ins/pages.md``, EX-71 in
``spec/extensions/exchange.md``.
"""

import io
from collections.abc import Iterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from odf_node.http.access_log import log_to
from support.event_loop import in_loop
from support.page_reader import INSPECTOR, READER, PageReader, reading
from support.secretive_node import SecretiveNode

CHANGING = ("/-/sign-in", "/-/sign-out", "/-/sql")
QUERY_TEXT = {"query": "SELECT 1 AS one"}
FOREIGN: dict[str, dict[str, str]] = {
    "another-origin": {"Origin": "https://evil.example"},
    "origin-of-nobody": {"Origin": "null"},
    "another-port": {"Origin": "http://127.0.0.1:1"},
    "another-site": {"Sec-Fetch-Site": "cross-site"},
    "a-neighbour": {"Sec-Fetch-Site": "same-site"},
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


def cookies_of(reader: PageReader) -> dict[str, str]:
    return {each.key: each.value for each in reader.session.cookie_jar}


def set_cookies(page: Any) -> SimpleCookie:
    found = SimpleCookie()
    for text in page.headers.getall("Set-Cookie", []):
        found.load(text)
    return found


async def is_signed_in(reader: PageReader) -> bool:
    return (await reader.ask("GET", "/")).status == 200


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize("foreign", FOREIGN)
@in_loop
async def test_form_with_the_right_word_from_elsewhere_does_nothing(
    made: SecretiveNode, foreign: str, path: str
) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        form = (await reader.get("/")).form_words() | QUERY_TEXT
        if path == "/-/sign-in":
            form = (await reader.get(path)).form_words() | {"token": READER}
        before = cookies_of(reader)
        refused = await reader.ask("POST", path, data=form, headers=FOREIGN[foreign])
        assert refused.status == 403
        assert "Set-Cookie" not in refused.headers
        assert cookies_of(reader) == before
        assert await is_signed_in(reader)


@pytest.mark.parametrize("path", CHANGING[1:])
@in_loop
async def test_form_without_its_word_or_with_anothers_does_nothing(made: SecretiveNode, path: str) -> None:
    async with reading(made) as reader, reading(made) as other:
        await reader.sign_in(READER)
        await other.sign_in(INSPECTOR)
        words = (await other.get("/")).form_words(), (await reader.get("/-/sign-in")).form_words()
        for word in ({}, {"form_word": ""}, {"form_word": "\0"}, *words):
            refused = await reader.ask("POST", path, data={**QUERY_TEXT, **word})
            assert refused.status == 403
            assert ">one<" not in refused.html
        assert await is_signed_in(reader)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", CHANGING)
@in_loop
async def test_nothing_changes_by_other_methods_or_words_in_the_address(
    made: SecretiveNode, path: str, method: str
) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        word, before = (await reader.get("/")).form_words()["form_word"], cookies_of(reader)
        page = await reader.ask(method, f"{path}?form_word={word}&query=SELECT+1+AS+one&token={READER}")
        assert b">one<" not in page.raw
        kept = {name: value for name, value in cookies_of(reader).items() if not name.endswith("_form")}
        assert kept.items() <= before.items()
        assert await is_signed_in(reader)


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/json", ""])
@in_loop
async def test_form_under_another_type_does_nothing(made: SecretiveNode, kind: str) -> None:
    async with reading(made) as reader:
        await reader.sign_in(READER)
        word = (await reader.get("/")).form_words()["form_word"]
        for path in CHANGING[1:]:
            body = f"form_word={word}&query=SELECT+1+AS+one".encode()
            refused = await reader.ask("POST", path, data=body, headers={"Content-Type": kind})
            assert refused.status in {400, 415}
        assert await is_signed_in(reader)


@in_loop
async def test_cookie_that_was_there_before_is_never_the_session(made: SecretiveNode) -> None:
    """Whoever can set a cookie for this name knows its word, and would know the session."""
    async with reading(made) as reader:
        port = reader.url.rpartition(":")[2]
        planted = {f"odf_node_{port}": "planted", f"odf_node_{port}_form": "planted too"}
        form = (await reader.get("/-/sign-in", cookies=planted)).form_words()
        assert "planted" not in str(cookies_of(reader))
        signed_in = await reader.ask("POST", "/-/sign-in", data={**form, "token": READER})
        assert signed_in.status == 303
        first = cookies_of(reader)[f"odf_node_{port}"]
        assert first != "planted"
        await reader.sign_in(READER)
        second = cookies_of(reader)[f"odf_node_{port}"]
        assert second != first
        # Whoever signs in again leaves no session behind that nobody will end.
        reader.session.cookie_jar.clear()
        await reader.get("/", 404, cookies={f"odf_node_{port}": first})
        await reader.get("/", cookies={f"odf_node_{port}": second})


@in_loop
async def test_two_cookies_of_one_name_are_no_session(made: SecretiveNode) -> None:
    """A neighbour's page can set one beside ours, for a path of ours, so that its own session is looked at."""
    async with reading(made) as reader, reading(made) as other:
        await reader.sign_in(READER)
        await other.sign_in(INSPECTOR)
        name = f"odf_node_{reader.url.rpartition(':')[2]}"
        mine, theirs = cookies_of(reader)[name], next(iter(cookies_of(other).values()))
        reader.session.cookie_jar.clear()
        for first, second in ((mine, theirs), (theirs, mine), (mine, "x"), ("x", mine)):
            await reader.get("/", 404, headers={"Cookie": f"{name}={first}; {name}={second}"})
        await reader.get("/", headers={"Cookie": f"{name}={mine}"})


@pytest.mark.parametrize("public", [None, "https://node.example"])
@in_loop
async def test_cookies_are_for_this_node_alone(made: SecretiveNode, public: str | None) -> None:
    async with reading(made, public_url=public) as reader:
        seen = [await reader.get("/-/sign-in")]
        form = seen[0].form_words()
        name = next(iter(set_cookies(seen[0])))
        word = set_cookies(seen[0])[name].value
        seen.append(
            await reader.ask("POST", "/-/sign-in", data={**form, "token": READER}, headers={"Cookie": f"{name}={word}"})
        )
        assert seen[1].status == 303
        for page in seen:
            for key, each in set_cookies(page).items():
                assert each["httponly"] or each["max-age"] == "0"
                assert each["domain"] == ""
                assert each["samesite"] == "Strict" or each["max-age"] == "0"
                assert bool(each["secure"]) == (public is not None)
                # Browsers take such a name only with Secure, for the whole host and from nobody beside it.
                assert key.startswith("__Host-") == (public is not None)
                assert each["path"] == "/" or public is None


@in_loop
async def test_token_stands_in_no_log_no_address_and_no_page(made: SecretiveNode) -> None:
    log = io.StringIO()
    handler = log_to(log)
    try:
        async with reading(made) as reader:
            await reader.sign_in("odf_wrong_secret_0123")
            await reader.sign_in(READER)
            await reader.ask("GET", f"/-/sign-in?token={READER}&then=/-/sql")
            word = cookies_of(reader)
            for page in reader.seen:
                assert READER.encode() not in page.raw
                assert READER not in page.headers.get("Location", "")
                assert b"odf_wrong_secret" not in page.raw
    finally:
        handler.close()
    assert '"path": "/-/sign-in"' in log.getvalue()
    for secret in (READER, "odf_wrong_secret", *word.values()):
        assert secret not in log.getvalue()


ERRORS = {
    "nowhere": ("GET", "/-/nowhere", 404),
    "absent": ("GET", "/-/datasets/absent.data", 404),
    "no-number": ("GET", "/-/datasets/shown.data/rows/x", 400),
    "method": ("POST", "/-/datasets/shown.data", 405),
    "no-word": ("POST", "/-/sql", 415),
    "sign-out-by-get": ("GET", "/-/sign-out", 404),
    "name-of-bytes": ("GET", "/-/datasets/%ff%00<script>alert(1)</script>", 404),
    "long": ("GET", "/-/datasets/" + "a" * 5000, 404),
    "asset": ("POST", "/-/pages.css", 405),
}


@pytest.mark.parametrize("name", ERRORS)
@in_loop
async def test_every_failure_is_guarded_as_pages_are(made: SecretiveNode, name: str) -> None:
    method, path, status = ERRORS[name]
    async with reading(made) as reader:
        await reader.sign_in(INSPECTOR)
        page = await reader.ask(method, path)
        assert page.status == status
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Cache-Control"] == "no-store"
        if page.headers["Content-Type"].startswith("text/html"):
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert page.headers["X-Frame-Options"] == "DENY"
        else:
            assert page.headers["Content-Type"].split(";")[0] == "application/problem+json"
        assert b"<script>" not in page.raw


@in_loop
async def test_answers_that_lead_on_are_guarded_and_lead_to_pages_alone(made: SecretiveNode) -> None:
    for then in ("//evil.example", "/-/..//evil.example", "/-/../../x", "javascript:alert(1)", "/\t/evil", "/-/@evil"):
        async with reading(made) as reader:
            led = await reader.sign_in(READER, then=then)
            assert led.status == 303
            target = led.headers["Location"]
            assert target == "/" or (target.startswith("/-/") and ".." not in target and "//" not in target)
            assert led.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert led.headers["Referrer-Policy"] == "same-origin"
            assert led.headers["Cache-Control"] == "no-store"
