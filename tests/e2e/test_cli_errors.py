"""What a stranger at the command line gets wrong, and what the machine does: one clear message, the right exit code."""

import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.command_line import (
    EXAMPLE,
    FIRST_VERSION,
    bubblewrap,
    environment_of,
    list_kept,
    run_command,
    write_source,
)

DATA = EXAMPLE / "data" / "countries-aggregated-2020-10-01.csv.gz"
ROOT = EXAMPLE / "countries.daily.yaml"
DERIVATIVE = EXAMPLE / "countries.severity.yaml"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("template") / "home"
    done = run_command(home, "add", ROOT, DERIVATIVE)
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    """A node with a root and a derivative, both without data."""
    return Path(shutil.copytree(template, tmp_path / "home"))


def refused(done: subprocess.CompletedProcess[str], code: int, *parts: str, lines: int = 1) -> None:
    """Ends with ``code`` and says so in one message, which holds ``parts``."""
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == lines, done.stderr
    assert done.stderr.startswith("odf-node")
    for part in parts:
        assert part in done.stderr


# Words


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["lst"], 2, ["no command 'lst'", "Did you mean 'list'?"]),
        (["list", "--wid"], 2, ["odf-node list: there is no option '--wid'", "'--wide'"]),
        (["--hom", "/x", "list"], 2, ["there is no option '--hom'", "'--home'"]),
        (["log", "countries.daily", "extra"], 2, ["'extra' is one word too many"]),
        (["list", "-o", "yml"], 2, ["invalid choice: 'yml'", "table", "json"]),
        (["inspect", "shema", "x"], 2, ["invalid choice: 'shema'", "schema"]),
        (["inspect"], 2, ["say which WHAT: schema, query"]),
        (["tail", "countries.daily", "-n", "-3"], 2, ["whole number of 1 or more", "'-3'"]),
        (["serve", "--http-port", "70000"], 2, ["from 0 to 65535", "'70000'"]),
        (["add"], 2, ["required: FILE"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_word_that_is_not_known_gets_the_nearest_one_and_where_help_is(
    home: Path, words: list[str], code: int, parts: list[str]
) -> None:
    refused(run_command(home, *words), code, *parts, "--help'.", lines=2)


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["add", str(DATA)], 2, ["a manifest is wanted here, not data", f"'odf-node new NAME --from {DATA} -o "]),
        (["list", "countris.daily"], 3, ["did you mean 'countries.daily'?"]),
        (["tail", "nothing"], 3, ["'odf-node list' shows what there is"]),
        (["pull", "localhost:8080/x"], 2, ["write the address as http://localhost:8080/x"]),
        (["push", "countries.daily", "--to", "10.0.0.1:8080/x"], 2, ["as http://10.0.0.1:8080/x"]),
        (["verify", "localhost:8080/x"], 3, ["an address is written http://localhost:8080/x"]),
        (["import", "nowhere.tar"], 3, ["nowhere.tar: there is no such file or folder"]),
        (["import", str(EXAMPLE)], 3, [f"{EXAMPLE}: no such dataset is there: it has no file refs/head"]),
        (["list", "zzz%"], 3, ["no dataset of this node matches"]),
        (["log", "did:odf:nonsense"], 7, ["malformed"]),
        (["--system-time", "yesterday", "list"], 2, ["--system-time 'yesterday'", "2020-10-01T12:00:00Z"]),
        (["--home", "", "list"], 2, ["--home is empty"]),
        (["--home", "~nobody-of-this-name/x", "list"], 2, ["there is no such user"]),
        (["pull"], 2, ["name what to pull, or say --all"]),
        (["verify"], 2, ["name what to verify; '%' is every dataset"]),
        (["pull", "--as", "x", "countries.daily"], 2, ["--as", "by its URL"]),
        (["pull", "--set-watermark", "2020-01-01", "--all"], 2, ["datasets that are named"]),
        (["pull", "--set-watermark", "2020-01-01", "countries.severity"], 2, ["is a derivative"]),
        (["ingest", "countries.daily"], 2, ["name the files", "--stdin"]),
        (["ingest", "countries.daily", "nowhere.csv"], 3, ["there is no file nowhere.csv"]),
        (["ingest", "countries.severity", str(ROOT)], 2, ["is a derivative", "odf-node pull countries.severity"]),
        (["ingest", "countries.daily", str(ROOT)], 2, ["no push source", "odf-node pull"]),
        (["sql", "-c", "SELECT 1", "-o", "parquet"], 2, ["--output-path"]),
        (["sql", "-c", "SELECT 1", "--output-path", str(ROOT)], 2, ["is there already"]),
        (["sql", "-c", "SELECT 1", "--output-path", "/no-such-folder/x"], 2, ["there is no folder /no-such-folder"]),
        (["sql", "-c", "SELECT 1", "--as-of", "soon"], 2, ["--as-of 'soon'"]),
        (["delete", "countries.severity"], 2, ["say --yes"]),
        (["delete", "-y", "countries.daily"], 2, ["is an input of 'countries.severity'"]),
        (["inspect", "schema", "countries.daily"], 2, ["has no schema yet"]),
        (["inspect", "query", "countries.daily"], 2, ["is no derivative"]),
        (["inspect", "block", "nowhere"], 3, ["there is no file nowhere"]),
        (["inspect", "data", str(EXAMPLE)], 2, ["is a folder"]),
        (["inspect", "data", str(ROOT)], 7, ["Parquet"]),
        (["inspect", "refusals", "zzz"], 3, ["'odf-node inspect refusals' lists them"]),
        (["token", "revoke", "zzz"], 3, ["'odf-node token list' shows them"]),
        (["engine", "inspect", "flink"], 8, ["'flink' is not installed", "spark"]),
        (["serve", "--ready-file", "/no-such-folder/x"], 2, ["there is no folder /no-such-folder"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_request_that_makes_no_sense_is_told_what_would(
    home: Path, words: list[str], code: int, parts: list[str]
) -> None:
    refused(run_command(home, *words), code, *parts)


# Manifests


MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: a.b
  kind: Root
  metadata: []
"""


@pytest.mark.parametrize(
    ("content", "code", "parts"),
    [
        (MANIFEST.replace("Root", "Rot"), 7, [":5:9: content.kind", "found Rot", "did you mean 'Root'?"]),
        (MANIFEST.replace("metadata:", "metadat:"), 7, [":6:3: content", "'metadat'", "did you mean 'metadata'?"]),
        (MANIFEST.replace("a.b", '"a.b'), 7, ["expected YAML"]),
        (b"kind: \xff\xfe", 7, [":1:7:", "UTF-8", "0xff"]),
        ("", 7, ["expected a DatasetSnapshot, found nothing"]),
        ("hello", 7, [":1:1:", "found hello"]),
    ],
    ids=["kind", "field", "syntax", "encoding", "empty", "no-map"],
)
@pytest.mark.parametrize("name", ["manifest.yaml", "-"])
def test_mistake_in_a_manifest_is_named_by_file_line_column_and_field(
    home: Path, tmp_path: Path, content: str | bytes, code: int, parts: list[str], name: str
) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / "manifest.yaml"
    path.write_bytes(raw)
    before = list_kept(home)
    done = run_command(home, "add", "-" if name == "-" else path, given=raw)
    refused(done, code, "standard input" if name == "-" else str(path), *parts)
    assert list_kept(home) == before


def test_manifest_file_that_is_missing_or_a_folder_is_named(home: Path, tmp_path: Path) -> None:
    refused(run_command(home, "add", tmp_path / "none.yaml"), 3, "there is no file", "none.yaml")
    refused(run_command(home, "add", tmp_path), 2, f"{tmp_path} is a folder")


def test_of_several_manifests_one_mistake_leaves_none_added(home: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(MANIFEST)
    bad.write_text(DERIVATIVE.read_text().replace("datasetRef: countries.daily", "datasetRef: countries.dayly"))
    before = list_kept(home)
    refused(run_command(home, "delete", "-y", "countries.severity", "nothing"), 3)
    refused(run_command(home, "add", good, bad), 2, "countries.severity")
    assert list_kept(home) == before


def test_dataset_that_is_there_already_is_not_added_again(home: Path) -> None:
    refused(run_command(home, "add", ROOT), 2, "'countries.daily' already")
    refused(run_command(home, "add", ROOT, ROOT), 2, "defined twice")


# Sources


@pytest.mark.parametrize(
    ("source", "code", "parts"),
    [
        (
            "file:///no-such-file.gz",
            3,
            ["no such file; $COVID_SOURCE of the environment says"],
        ),
        (EXAMPLE.as_uri(), 7, ["a folder"]),
        (ROOT.as_uri(), 7, ["malformed gzip file", "countries.daily.yaml"]),
        ("http://127.0.0.1:1/x.gz", 5, ["http://127.0.0.1:1/x.gz"]),
        ("gopher://x/y", 8, ["gopher", "http, https, file, ", "ftp"]),
    ],
)
def test_source_that_cannot_be_had_or_unpacked_is_named(home: Path, source: str, code: int, parts: list[str]) -> None:
    before = list_kept(home)
    refused(run_command(home, "pull", "countries.daily", environment={"COVID_SOURCE": source}), code, *parts)
    assert list_kept(home) == before


def test_gzip_file_that_is_cut_off_is_named(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.csv.gz"
    path.write_bytes((EXAMPLE / "data" / "countries-aggregated-2020-10-01.csv.gz").read_bytes()[:50_000])
    done = run_command(home, "pull", "countries.daily", environment={"COVID_SOURCE": path.as_uri()})
    refused(done, 7, "cut.csv.gz", "found the end of the file")


@pytest.mark.spark
def test_file_without_a_column_and_query_without_sense_are_told_with_what_is_expected(
    home: Path, tmp_path: Path
) -> None:
    import gzip

    path = tmp_path / "short.csv.gz"
    path.write_bytes(gzip.compress(b"Date,Country,Confirmed,Recovered\n2020-01-22,Chad,1,0\n"))
    before = list_kept(home)
    done = run_command(home, "pull", "countries.daily", environment={"COVID_SOURCE": path.as_uri()}, has_engine=True)
    refused(done, 7, "short.csv.gz", "missing: Deaths", "Correct the file, or change the read step's schema")
    refused(run_command(home, "sql", "-c", "SELEC 1", has_engine=True), 7, "invalid query", "found: SELEC")
    early = run_command(home, "sql", "-c", "SELECT * FROM Countries.daily", has_engine=True)
    refused(early, 7, "countries.daily has no rows yet", "'odf-node pull'")
    assert list_kept(home) == before


# Peers


@pytest.mark.parametrize(
    ("address", "code", "parts"),
    [
        ("http://127.0.0.1:1/x", 5, ["no server answers there", "check the address"]),
        ("http://no-such-host.invalid/x", 5, ["no such host is known"]),
        ("http://127.0.0.1:1/", 7, ["ends with the dataset's name: http://127.0.0.1:1/NAME"]),
        ("http://", 2, ["--as"]),
        ("http://[::1/x", 2, ["--as"]),
        ("http://127.0.0.1:99999/x", 7, ["scheme://host/dataset"]),
        ("ftp://host/x", 8, ["supported: http"]),
        ("file:///no-such-folder/x", 3, ["/no-such-folder/x: there is no such file or folder"]),
    ],
)
def test_address_that_leads_nowhere_is_told_what_is_wrong_with_it(
    home: Path, address: str, code: int, parts: list[str]
) -> None:
    before = list_kept(home)
    refused(run_command(home, "pull", address), code, *parts)
    assert list_kept(home) == before


class _WebServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_there = self.path.startswith("/page/")
        body = b"<html>" + b"x" * (50 if is_there else 5_000_000)
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _QuietServer(HTTPServer):
    def handle_error(self, *_: object) -> None:
        """Whoever asked may read no further; where that is told, a command's words are expected."""


@contextmanager
def web_server() -> Iterator[str]:
    server = _QuietServer(("127.0.0.1", 0), _WebServer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_server_that_is_no_odf_node_is_told_from_one_that_does_not_answer(home: Path) -> None:
    with web_server() as url:
        refused(run_command(home, "pull", f"{url}/nothing"), 3, url, "no such dataset")
        refused(run_command(home, "pull", f"{url}/page"), 7, url, "refs/head", "the text of a hash")
        refused(run_command(home, "push", "countries.daily", "--to", f"{url}/page"), 8, url, "server of another kind")


def test_port_in_use_is_named(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(run_command(home, "serve", "--http-port", port), 5, port, "another program uses it", "choose another")


# Homes


def test_home_that_is_used_for_something_else_is_rejected_by_every_command(tmp_path: Path) -> None:
    documents, file = tmp_path / "documents", tmp_path / "file"
    documents.mkdir()
    (documents / "thesis.odt").write_text("mine")
    file.write_text("mine")
    for words in (["list"], ["add", str(ROOT)], ["pull", "x"], ["serve", "--http-port", "0"]):
        refused(run_command(documents, *words), 2, str(documents), "thesis.odt", "--home")
        refused(run_command(file, *words), 2, str(file), "found a file")
        refused(run_command(file / "below", *words), 2, str(file), "found a file")
    assert [path.name for path in documents.iterdir()] == ["thesis.odt"]
    assert file.read_text() == "mine"


def test_home_of_another_build_is_rejected_before_anything_is_served(home: Path) -> None:
    with closing(sqlite3.connect(home / "odf-node.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    for words in (["list"], ["add", str(ROOT)], ["serve", "--http-port", "0"]):
        refused(run_command(home, *words), 8, str(home), "found version 0-00063", "use the odf-node that made it")


def test_read_only_home_can_be_read_and_says_why_it_cannot_be_written(home: Path, tmp_path: Path) -> None:
    before = list_kept(home)
    source = write_source(tmp_path / "source.csv.gz", FIRST_VERSION)
    around = bubblewrap("--ro-bind", home, home)
    assert run_command(home, "list", around=around).returncode == 0
    for words in (
        ["pull", "countries.daily"],
        ["delete", "-y", "countries.severity"],
        ["publish", "countries.daily", "--off"],
        ["token", "create", "me"],
        ["sql", "-c", "SELECT 1"],
    ):
        done = run_command(home, *words, environment=source, around=around)
        refused(done, 5, str(home), "cannot be written")
    assert list_kept(home) == before


def test_full_disk_is_named_and_changes_nothing(home: Path, tmp_path: Path) -> None:
    small, before = tmp_path / "small", run_command(home, "list", "-w", "-o", "json").stdout
    small.mkdir()
    source = EXAMPLE / "data" / "countries-aggregated-2020-10-01.csv.gz"
    script = (
        'cp -r "$1"/. "$2" && dd if=/dev/zero of="$2/cache/fill" bs=4k 2>/dev/null; truncate -s -64k "$2/cache/fill"'
    )
    script += '; shift 2; "$@"; code=$?; "$1" -m odf_node list -w -o json >"$LISTED"; exit $code'
    listed = tmp_path / "listed.json"
    done = subprocess.run(
        [
            *bubblewrap("--size", "4000000", "--tmpfs", small),
            "bash", "-c", script, "bash", home, small,
            sys.executable, "-m", "odf_node", "pull", "countries.daily",
        ],
        env=environment_of(
            small, LISTED=str(listed), COVID_SOURCE=source.as_uri()
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )  # fmt: skip
    refused(done, 5, str(small), "No space left on device")
    assert listed.read_text() == before


def test_result_that_finds_no_room_is_a_failure(home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "odf_node", "list"],
            env=environment_of(home),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 5
    assert done.stderr == "odf-node list: cannot write the result: No space left on device\n"


# The machine


def test_machine_without_a_sandbox_runs_no_query_and_says_why(home: Path, tmp_path: Path) -> None:
    before = list_kept(home)
    source = write_source(tmp_path / "source.csv.gz", FIRST_VERSION)
    around = bubblewrap("--unshare-user", "--disable-userns")
    for words in (["pull", "countries.daily"], ["sql", "-c", "SELECT 1"]):
        done = run_command(home, *words, environment=source, around=around)
        refused(done, 1, "no sandbox", "namespace", "'odf-node doctor' says how to fix it")
    assert list_kept(home) == before
    doctor = run_command(home, "doctor", around=around)
    assert doctor.returncode == 1
    assert "MISSING  sandbox" in doctor.stdout


def test_reader_that_goes_away_is_no_failure(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "odf_node", "log", "countries.daily"],
            env=environment_of(home),
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_streams_that_are_closed_are_stood_in_for(home: Path) -> None:
    command = f'"{sys.executable}" -m odf_node'
    for line, code in (("list >&-", 0), ("add - <&-", 7), ("lst 2>&-", 2)):
        done = subprocess.run(
            ["sh", "-c", f"{command} {line}"], env=environment_of(home), capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr


# Faults of our own


BROKEN = "import odf_node.datasets.naming as n, sys; n.select_datasets = None\n"
BROKEN += "from odf_node.cli.main import main; sys.exit(main(['list', 'x', '--home', sys.argv[1]]))"


def run_broken(home: Path, temporary: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BROKEN, home],
        env=environment_of(home, TMPDIR=str(temporary), **more),
        capture_output=True,
        text=True,
        check=False,
    )


def test_fault_of_our_own_is_one_message_and_a_report_for_its_makers(home: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = run_broken(home, temporary)
    refused(done, 1, "this is a fault of odf-node itself: TypeError", lines=2)
    (report,) = temporary.iterdir()
    assert str(report) in done.stderr
    assert "Traceback" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_fault_of_our_own_shows_its_traceback_to_who_asks_for_it(home: Path, tmp_path: Path) -> None:
    done = run_broken(home, tmp_path, ODF_NODE_DEBUG="1")
    assert "Traceback" in done.stderr
    assert "TypeError" in done.stderr


def test_audit_names_what_was_done_and_json_says_the_same(home: Path) -> None:
    assert run_command(home, "publish", "countries.daily", "--off").returncode == 0
    table = run_command(home, "inspect", "audit").stdout.splitlines()
    entries = json.loads(run_command(home, "inspect", "audit", "-o", "json").stdout)
    assert table[0].split() == ["AT", "BY", "COMMAND", "ON", "OUTCOME", "DETAIL"]
    assert [(entry["command"], entry["subject"]) for entry in entries] == [
        ("publish --off", "countries.daily"),
        ("add", "countries.severity"),
        ("add", "countries.daily"),
    ]
    assert len(run_command(home, "inspect", "audit", "-n", "1").stdout.splitlines()) == 3
