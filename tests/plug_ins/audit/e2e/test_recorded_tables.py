"""Reads of pages, changes, of Iceberg's readers, by Flight and Smart Transfer are recorded, by real clients."""

import asyncio
import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from typing import Any

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as adbc
import aiohttp
import pytest
from pyiceberg.catalog import load_catalog

from support.audited_homes import AuditedHome
from support.daemons import Daemon, daemon, wait_until

SETTINGS = "[listen]\nport = 0\nflight_port = 0\n[access]\npages = 'everyone'\n"
NEWEST, WRITTEN, DECLARED = 4, 3, 2
"""Blocks of ``cities``: rows, rows, and before them its source."""
ROWS_PAGE = "/-/datasets/{dataset}/rows"
FILES = "/odf--iceberg/{table}/{path}"


class Audited:
    """The home, its daemon, and a token that reads it."""

    def __init__(self, home: AuditedHome, served: Daemon, token: dict[str, Any]) -> None:
        self.home, self.served, self.token = home, served, token
        self.caller = f"token:{token['id']}"
        self._seen = 0

    def new_reads(self, work: str, *whats: str) -> list[dict[str, Any]]:
        """Wait for further records of reads of ``cities`` by a route, until all these kinds are among them.

        What one request reads twice may stand in two records.
        """

        def find() -> Any:
            new = [each for each in self.home.audit("who-read", "cities")[self._seen :] if each["work"] == work]
            return new if set(whats) <= {each["what"] for each in new} else None

        reads: list[dict[str, Any]] = wait_until(find, lambda: f"{self.home.audit('who-read', 'cities')}")
        self._seen = len(self.home.audit("who-read", "cities"))
        return reads


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audit")
    home = AuditedHome.create(folder / "home")
    home.run("ingest", "cities", folder / "rows.csv")
    home.run("publish", "cities")
    token = json.loads(home.run("token", "create", "newsroom", "--read", "cities", "-o", "json"))
    with daemon(home.folder, settings=SETTINGS) as served:
        yield Audited(home, served, token)


def get(url: str, opener: Any = None, **headers: str) -> str:
    request = urllib.request.Request(url, headers=headers)
    with (opener or urllib.request.build_opener()).open(request) as answer:
        return str(answer.read().decode())


def hidden_fields(page: str) -> dict[str, str]:
    """Give what a form has to bring back."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_rows_of_a_page_are_a_read_of_the_version_that_it_shows(audited: Audited) -> None:
    """AUDIT-1, AUDIT-2."""
    pages = f"{audited.served.url}/-/datasets/cities/rows"
    assert "Oslo" in get(pages)
    (read,) = audited.new_reads(ROWS_PAGE, "rows")
    assert (read["door"], read["what"], read["version"]) == ("http", "rows", NEWEST)
    assert read["caller"].startswith("address:")
    get(f"{pages}?block={WRITTEN}", Authorization=f"Bearer {audited.token['token']}")
    (read,) = audited.new_reads(ROWS_PAGE, "rows")
    assert (read["version"], read["caller"]) == (WRITTEN, audited.caller)
    (written,) = audited.home.audit("who-wrote", "cities", str(WRITTEN))
    assert read["head"] == written["head"]
    get(f"{pages}/0?key=0")
    (read,) = audited.new_reads(f"{ROWS_PAGE}/{{offset}}", "rows")
    assert read["version"] == NEWEST
    get(f"{audited.served.url}/-/datasets/cities")
    assert "no rows" in get(f"{pages}?block={DECLARED}")  # nothing is read there, as the next test finds


def test_who_signed_in_is_recorded_by_the_token(audited: Audited) -> None:
    """AUDIT-2: rows and SQL of pages alike."""
    url = audited.served.url
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    fields = hidden_fields(get(f"{url}/-/sign-in", opener)) | {"token": audited.token["token"]}
    with opener.open(f"{url}/-/sign-in", urllib.parse.urlencode(fields).encode()) as answer:
        assert answer.status == 200
    get(f"{url}/-/datasets/cities/rows", opener)
    (read,) = audited.new_reads(ROWS_PAGE, "rows")
    assert (read["door"], read["caller"]) == ("http", audited.caller)
    fields = hidden_fields(get(f"{url}/-/sql", opener)) | {"query": "SELECT count(*) AS n FROM cities"}
    with opener.open(f"{url}/-/sql", urllib.parse.urlencode(fields).encode()) as answer:
        assert answer.status == 200
    assert {each["caller"] for each in audited.new_reads("/-/sql", "rows")} == {audited.caller}


def test_flight_is_recorded_by_the_token(audited: Audited) -> None:
    """AUDIT-1, AUDIT-2: Flight SQL."""
    (line,) = audited.served.wait_for("flight")
    header = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
    options = {header: f"Bearer {audited.token['token']}"}
    with adbc.connect(line["url"], db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) AS n FROM cities")
        assert cursor.fetch_arrow_table()["n"].to_pylist() == [4]
    reads = audited.new_reads("query", "rows")
    found = {(each["door"], each["caller"], each["what"], each["version"]) for each in reads}
    assert found == {("flight", audited.caller, "rows", NEWEST)}


def test_pull_by_smart_transfer_is_recorded(audited: Audited) -> None:
    """AUDIT-1: blocks that others pull, by that protocol, too."""

    async def ask() -> Any:
        headers = {"x-odf-smtp-version": "1"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{audited.served.url}/cities/pull", headers=headers) as socket,
        ):
            await socket.send_json({"begin_after": None, "stop_at": None, "force_update_if_diverged": False})
            return (await socket.receive_json())["Ok"]["transfer_plan"]["num_blocks"]

    assert asyncio.run(ask()) == NEWEST + 1
    (read,) = audited.new_reads("/{dataset}/pull", "blocks")
    assert (read["door"], read["version"], read["caller"][:8]) == ("http", NEWEST, "address:")


def test_changes_are_a_read_of_the_version_that_they_go_up_to(audited: Audited) -> None:
    """AUDIT-1: over HTTP, and by Python."""
    url = f"{audited.served.url}/cities/changes?until={WRITTEN}"
    assert len(get(url, Authorization=f"Bearer {audited.token['token']}").splitlines()) == 2
    (read,) = audited.new_reads("/{dataset}/changes", "rows")
    assert (read["door"], read["version"], read["caller"]) == ("http", WRITTEN, audited.caller)
    script = audited.home.folder.with_name("changes.py")
    script.write_text("import odf_node\nwith odf_node.open() as node: print(len(node.table('cities').changes(-1)))\n")
    assert audited.home.run_script(script).split() == ["4"]
    last = audited.home.audit("who-read", "cities")[-1]
    assert (last["door"], last["program"], last["version"]) == ("python", "changes.py", NEWEST)
    get(f"{audited.served.url}/cities/changes?since={NEWEST}")  # nothing is read, as the next test finds


@pytest.mark.parametrize(("snapshot", "version", "files"), [(0, WRITTEN, 1), (1, NEWEST, 2)])
def test_iceberg_reader_is_recorded_with_the_version_of_its_snapshot(
    audited: Audited, snapshot: int, version: int, files: int
) -> None:
    """AUDIT-1, AUDIT-2: the snapshot, and the files of rows, by the token that the credentials were given to."""
    settings = {"uri": f"{audited.served.url}/_iceberg", "token": audited.token["token"]}
    table = load_catalog("node", type="rest", **settings).load_table("odf.cities")
    read = table.scan(snapshot_id=table.snapshots()[snapshot].snapshot_id).to_arrow()
    assert read.num_rows == 2 * files
    reads = audited.new_reads(FILES, "table", "file")
    assert {(each["door"], each["caller"]) for each in reads} == {("http", audited.caller)}
    assert {each["version"] for each in reads if each["what"] == "table"} == {version}
    assert {each["version"] for each in reads if each["what"] == "file"} == {NEWEST}
