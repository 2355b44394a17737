"""Pages in a real Chromium: signed in, read without script, by keyboard, on a phone and at a desk, dark and light."""

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.chromium import Tab, find_chromium, open_tab
from support.event_loop import LIMIT_S
from support.hostile_dataset import hostile_chain, hostile_words
from support.offers import Judge, PublisherHome
from support.page_reader import INSPECTOR, PageReader, reading
from support.secretive_node import SecretiveNode

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here (apt-get install chromium): nobody looked at the pages in a browser"
)

PLACE = "/-/datasets/hostile.data"
TABS = ("", "/rows", "/rows/0", "/versions", "/versions/1", "/lineage", "/trust", "/quarantine")
ALL = (
    "/",
    *(f"{PLACE}{tab}" for tab in TABS),
    "/-/sql",
    "/-/status",
    "/-/refusals",
    "/-/peers",
    "/-/datasets/absent.data",
)
TAB_KEY, ENTER_KEY, LEFT_KEY = ("Tab", 9), ("Enter", 13), ("ArrowLeft", 37)


@asynccontextmanager
async def browsing(folder: Path) -> AsyncIterator[tuple[Tab, PageReader]]:
    """Serve a dataset whose every word would run, and open a browser."""
    assert CHROMIUM is not None
    made = SecretiveNode.create(folder / "node")
    columns, cells = hostile_words()
    PublisherHome(Judge(made.node.home.folder, made.node.engines)).keep(
        hostile_chain(made.hidden.folder, columns, cells)
    )
    try:
        async with reading(made) as reader, open_tab(CHROMIUM, folder) as tab:
            yield tab, reader
    finally:
        made.node.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Tab, PageReader]]:
    """One browser for all, signed in by the first."""
    with asyncio.Runner() as runner:
        opened = browsing(tmp_path_factory.mktemp("browser"))
        tab, reader = runner.run(opened.__aenter__())
        try:
            runner.run(sign_in(tab, reader))
            yield runner, tab, reader
        finally:
            runner.run(opened.__aexit__(None, None, None))


def in_browser(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test with the browser, as it was when it was started."""

    @functools.wraps(test)
    def run(browser: tuple[asyncio.Runner, Tab, PageReader]) -> None:
        runner, tab, reader = browser

        async def limited() -> None:
            async with asyncio.timeout(LIMIT_S):
                await tab.set_script(runs=True)
                tab.complaints.clear()
                await test(tab, reader)

        runner.run(limited())

    # pytest would else look for fixtures of the names that the test itself has.
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


async def sign_in(tab: Tab, reader: PageReader, then: str = "") -> None:
    await tab.go(f"{reader.url}/-/sign-in{then}")
    # Chromium gives the focus when it first draws the page, which may be after it has loaded.
    async with asyncio.timeout(LIMIT_S):
        while await tab.do("document.activeElement.id") != "token":  # noqa: ASYNC110 - the browser tells nobody
            await asyncio.sleep(0.02)
    await tab.call("Input.insertText", text=INSPECTOR)
    await tab.leave_by_key(*ENTER_KEY)


@in_browser
async def test_pages_run_nothing_of_others_and_fit_every_screen_pages_7_pages_8(tab: Tab, reader: PageReader) -> None:
    """``ODF_PICTURES`` names a folder for pictures of all pages."""
    pictures = os.environ.get("ODF_PICTURES")
    for scheme, width in (("light", 1280), ("dark", 390)):
        await tab.prefer(scheme)
        await tab.resize(width, 844)
        titles = set()
        for number, path in enumerate(ALL):
            await tab.go(f"{reader.url}{path}")
            titles.add(await tab.do("document.title"))
            assert await tab.do(HERE_IS_SEEN), (path, width)
            assert await tab.do("document.documentElement.scrollWidth <= innerWidth"), (path, width)
            assert await tab.do("getComputedStyle(document.body).colorScheme") == "light dark"
            if pictures:
                await tab.save_picture(Path(pictures) / f"{number:02}-{scheme}-{width}.png")
        # A row of the rows, and a version of the versions, are called as these.
        assert len(titles) == len(ALL) - 2
    # No dialog was opened, no policy broken, no script failed; what is nowhere is told as such.
    assert [each for each in tab.complaints if "404" not in each and "DOM" not in each] == []
    assert await tab.do("matchMedia('(prefers-color-scheme: dark)').matches")
    dark = await tab.do("getComputedStyle(document.body).backgroundColor")
    await tab.prefer("light")
    assert await tab.do("getComputedStyle(document.body).backgroundColor") != dark


@in_browser
async def test_slider_goes_through_time_by_keyboard_pages_10(tab: Tab, reader: PageReader) -> None:
    await sign_in(tab, reader, f"?then={PLACE}/rows")
    assert await tab.do("location.pathname") == f"{PLACE}/rows"
    assert await tab.do("document.querySelectorAll('table.rows tbody tr').length") == len(hostile_words()[1][0])
    await tab.do("document.getElementById('version').focus()")
    newest = await tab.do("document.getElementById('moment').textContent")
    await tab.leave_by_key(*LEFT_KEY)
    assert await tab.do("document.getElementById('moment').textContent") != newest
    assert "no rows then" in await tab.do("document.body.innerText")


@in_browser
async def test_pages_are_read_without_script_and_by_keyboard(tab: Tab, reader: PageReader) -> None:
    await tab.set_script(runs=False)
    await sign_in(tab, reader)
    await tab.go(f"{reader.url}/")
    await tab.press(*TAB_KEY)
    assert await tab.do("document.activeElement.className") == "skip"
    assert await tab.do("document.activeElement.getBoundingClientRect().left >= 0")
    await tab.press(*ENTER_KEY, text="\r")
    assert await tab.do("document.activeElement.id") == "content"
    await tab.go(f"{reader.url}{PLACE}/rows?version=3")
    assert "no rows then" in await tab.do("document.body.innerText")
    reached = set()
    await tab.go(f"{reader.url}{PLACE}/rows")
    for _ in range(60):
        await tab.press(*TAB_KEY)
        reached.add(await tab.do("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert {"Datasets", "SQL", "Sign out", "Overview", "version", "Show", "from", "Go", "0"} <= reached


@in_browser
async def test_screen_readers_are_told_names_headings_and_places(tab: Tab, reader: PageReader) -> None:
    await tab.call("Accessibility.enable")
    for path in ALL:
        await tab.go(f"{reader.url}{path}")
        tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
        seen = [(n["role"]["value"], n.get("name", {}).get("value", "").strip()) for n in tree if not n["ignored"]]
        roles = [role for role, _ in seen]
        named = {"button", "link", "textbox", "searchbox", "slider", "spinbutton", "checkbox", "table", "region"}
        assert [role for role, name in seen if role in named - {"table"} and not name] == [], path
        assert roles.count("main") == 1
        assert roles.count("banner") == 1
        levels = await tab.do("[...document.querySelectorAll('h1,h2,h3')].map(each => each.tagName)")
        assert levels.count("H1") == 1
        assert await tab.do("document.documentElement.lang") == "en"
        assert all(await tab.do("[...document.querySelectorAll('th')].map(each => each.scope != '')"))


@in_browser
async def test_words_and_their_paper_differ_enough_to_be_read(tab: Tab, reader: PageReader) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 to 1, of every text on every page, dark and light."""
    for scheme in ("light", "dark"):
        await tab.prefer(scheme)
        for path in ("/", PLACE, f"{PLACE}/rows", f"{PLACE}/lineage", "/-/status", "/-/sql"):
            await tab.go(f"{reader.url}{path}")
            assert await tab.do(CONTRASTS) == [], (scheme, path)


HERE_IS_SEEN = """
[...document.querySelectorAll("nav a[aria-current]")].every((each) => {
  const { left, right } = each.getBoundingClientRect();
  return left >= 0 && right <= innerWidth;
})
"""

CONTRASTS = """
(() => {
  const read = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = read(getComputedStyle(each).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
    if (!own || element.closest("svg")) continue;
    const [a, b] = [light(read(getComputedStyle(element).color)), light(paper(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(`${element.tagName}.${element.className}: ${(a + 0.05) / (b + 0.05)}`);
  }
  return weak.slice(0, 5);
})()
"""
