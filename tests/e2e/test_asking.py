"""Clauses QUERY-9 to QUERY-11: questions in scripts, on standard input, and in a shell on a real terminal."""

import json
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import run_command
from support.nodes import RealNode
from support.terminal import ASKED, terminal

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: my.cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: { kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "city STRING", "people BIGINT"] }
      merge: { kind: Append }
"""
DAYS = {
    "2024-02-01T00:00:00Z": "event_time,city,people\n2024-01-01T00:00:00Z,Bern,1\n2024-01-02T00:00:00Z,Rome;,3\n",
    "2024-02-02T00:00:00Z": "event_time,city,people\n2024-01-03T00:00:00Z,Oslo,2\n",
}
COUNT = "SELECT count(*) AS n FROM my.cities"
CITIES = "SELECT city, people FROM my.cities ORDER BY people"
ENDLESS = "SELECT count(*) AS n FROM range(3000000) AS a, range(3000000) AS b WHERE a.value <> b.value"
FUSION = ("--engine", "datafusion")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asking")
    made = RealNode(folder / "home")
    (folder / "cities.yaml").write_text(MANIFEST)
    made.must("add", str(folder / "cities.yaml"), "--system-time", "2024-01-31T00:00:00Z")
    for day, text in DAYS.items():
        (folder / "rows.csv").write_text(text)
        made.must("ingest", "my.cities", str(folder / "rows.csv"), "--system-time", day)
    return folder / "home"


def test_script_answers_its_statements_in_order_query_9(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(f"-- how many; or more\n{COUNT};\n;SELECT city FROM my.cities WHERE city = 'Rome;'")
    done = run_command(home, "sql", *FUSION, "--script", script, "-o", "ndjson")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"n": 3}, {"city": "Rome;"}]


def test_query_that_names_no_engine_is_in_the_sql_of_datafusion_query_7(home: Path) -> None:
    done = run_command(
        home,
        "sql",
        "-o",
        "csv",
        "-c",
        """SELECT max("city") AS "Last", arrow_typeof(count(*)) AS t FROM "my.cities" """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, '"Last","t"\n"Rome;","Int64"\n', "")


def test_setting_that_chose_the_engine_is_told_and_chooses_none_query_7(home: Path) -> None:
    old = {"ODF_NODE_ENGINES_QUERY": "spark"}
    done = run_command(home, "sql", "-o", "csv", "-c", "SELECT arrow_typeof(1) AS t", environment=old)
    assert (done.returncode, done.stdout) == (0, '"t"\n"Int64"\n')
    assert done.stderr.startswith("warning: ODF_NODE_ENGINES_QUERY: engines.query has no effect any more: ")


def test_standard_input_is_a_script_query_9(home: Path) -> None:
    done = run_command(home, "sql", *FUSION, "--as-of", "2024-02-01T12:00:00Z", "-o", "csv", given=COUNT.encode())
    assert (done.returncode, done.stdout) == (0, '"n"\n2\n')


def test_script_stops_at_the_first_error_and_says_which_query_9(home: Path) -> None:
    given = f"{COUNT}; SELECT nothing FROM my.cities; {CITIES}"
    done = run_command(home, "sql", *FUSION, "-o", "csv", given=given.encode())
    assert (done.returncode, done.stdout) == (7, '"n"\n3\n')
    assert done.stderr.startswith("odf-node sql: statement 2 of 3: invalid query: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "code", "reported"),
    [
        pytest.param(b"", 2, "no statement", id="nothing"),
        pytest.param(b"-- nothing; but words\n ; ;", 2, "no statement", id="comments"),
        pytest.param(b"SELECT 'a; SELECT 1", 7, "does not end", id="open-quote"),
        pytest.param(b"SELECT '\xff'", 2, "UTF-8, at byte 8", id="no-text"),
    ],
)
def test_script_that_is_none_is_told_so(home: Path, given: bytes, code: int, reported: str) -> None:
    done = run_command(home, "sql", *FUSION, given=given)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert reported in done.stderr


def test_several_answers_have_no_room_in_one_file_query_11(home: Path, tmp_path: Path) -> None:
    given = f"{COUNT}; {COUNT}".encode()
    done = run_command(home, "sql", *FUSION, "-o", "parquet", "--output-path", tmp_path / "a", given=given)
    assert done.returncode == 2
    assert "2 statements" in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_answers_in_files_are_read_by_others_query_11(home: Path, tmp_path: Path) -> None:
    for name in ("parquet", "arrow", "csv"):
        path = tmp_path / name
        done = run_command(home, "sql", *FUSION, "-c", CITIES, "-o", name, "--output-path", path)
        assert done.returncode == 0, done.stderr
    found = pq.read_table(tmp_path / "parquet")
    assert found.to_pydict() == {"city": ["Bern", "Oslo", "Rome;"], "people": [1, 2, 3]}
    with pa.memory_map(str(tmp_path / "arrow")) as file:
        assert pa.ipc.open_file(file).read_all().equals(found)
    assert (tmp_path / "csv").read_text().splitlines()[1:] == ['"Bern",1', '"Oslo",2', '"Rome;",3']
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrow", "csv", "parquet"]


def test_answer_that_cannot_be_written_leaves_nothing_query_11(home: Path, tmp_path: Path) -> None:
    query = "SELECT named_struct('a', 1) AS s, 1 AS n, 2 AS n_2"
    done = run_command(home, "sql", *FUSION, "-c", query, "-o", "csv", "--output-path", "/dev/full/x")
    assert done.returncode == 2
    taken = tmp_path / "taken"
    taken.write_text("mine")
    done = run_command(home, "sql", *FUSION, "-c", query, "-o", "arrow", "--output-path", taken)
    assert (done.returncode, taken.read_text()) == (2, "mine")
    assert [*tmp_path.iterdir()] == [taken]


def test_shell_answers_on_a_terminal_query_10(home: Path, tmp_path: Path) -> None:
    with terminal(home, "sql", *FUSION) as shell:
        shell.wait_for(ASKED)
        assert "my.cities" in shell.ask(".tables", "offset, op, system_time, event_time, city, people", ASKED)
        assert "Option<String>" in shell.ask(".schema my.cities", "people", ASKED)
        # What other shells say.
        for text in ("show tables", "SHOW TABLES;", r"\d", r"\dt"):
            shell.ask(text, "offset, op, system_time, event_time, city, people", ASKED)
        for text in ("describe my.cities", 'DESC "my.cities";', r"\d my.cities"):
            shell.ask(text, "Option<String>", ASKED)
        shell.ask("help", "Tab completes", ASKED)
        # A line that is wider than the terminal is one all the same.
        assert "...>" not in shell.ask(f"SELECT {'1 + ' * 40}1 AS n;", "\n41\n", ASKED)
        # Over several lines, with a name that Tab completes.
        shell.type("SELECT city, people\r")
        shell.wait_for("...>")
        shell.type("FROM my.c\t")
        shell.wait_for("my.cities")
        shell.ask(" ORDER BY people DESC;", "Rome;", "Oslo", "Bern", ASKED)
        # What is wrong is one line, and the shell goes on.
        assert "no_such" in shell.ask("SELECT no_such FROM my.cities;", "odf-node sql: invalid query", ASKED)
        shell.ask(".nonsense", "odf-node sql: there is no .nonsense", ASKED)
        shell.ask(".engine nonsense", "engine 'nonsense' is not installed", ASKED)
        shell.ask(".as-of 2024-02-01T12:00:00Z", ASKED, "odf as of 2024-02-01T12:00:00Z>")
        shell.ask(f"{COUNT};", "\n2\n", ASKED)
        shell.ask(".as-of off", ASKED)
        shell.ask(f"{COUNT}; SELECT ';' AS a;", "\n3\n", "\n;\n", ASKED)
        # Into a file, then again on the terminal.
        shell.ask(f".format parquet {tmp_path / 'answer.parquet'}", ASKED)
        shell.ask(f"{CITIES};", "3 rows written to", ASKED)
        shell.ask(".format csv", ASKED)
        shell.ask(f"{COUNT};", '"n"\n3\n', ASKED)
        # A question that takes too long, and one after it.
        shell.ask(f"{ENDLESS};", "running the query")
        shell.type("\x03")
        shell.wait_for("stopped")
        shell.wait_for(ASKED)
        shell.ask(f"{COUNT};", '"n"\n3\n', ASKED)
        # What is half typed is forgotten.
        shell.type("SELECT 1\x03")
        shell.wait_for(ASKED)
        shell.type("\x04")
        assert shell.wait_for_end() == 0
    assert pq.read_table(tmp_path / "answer.parquet").num_rows == 3
    history = home / "questions"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert ".tables" in history.read_text()


@pytest.mark.parametrize("text", ["exit", "QUIT;", r"\q", ".exit"])
def test_shell_is_left_as_others_are_query_10(home: Path, text: str) -> None:
    with terminal(home, "sql") as shell:
        shell.wait_for(ASKED)
        shell.type(f"{text}\r")
        assert shell.wait_for_end() == 0


def test_shell_shows_long_answers_with_the_users_pager_query_10(home: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged; wc -l\n")
    pager.chmod(0o700)
    with terminal(home, "sql", *FUSION, environment={"PAGER": str(pager)}, lines=10) as shell:
        shell.wait_for(ASKED)
        assert "paged" not in shell.ask(f"{CITIES};", "Rome;", ASKED)
        shell.ask("SELECT value FROM range(50);", "paged\n52\n", ASKED)
        shell.ask(".pages off", ASKED)
        assert "paged" not in shell.ask("SELECT value FROM range(50);", "49\n", ASKED)


def test_what_goes_to_a_pager_does_not_steer_the_terminal_query_10(home: Path, tmp_path: Path) -> None:
    pager, paged = tmp_path / "pager", tmp_path / "paged"
    pager.write_text(f"#!/bin/sh\ncat > {paged}; echo paged\n")
    pager.chmod(0o700)
    with terminal(home, "sql", *FUSION, "-o", "csv", environment={"PAGER": str(pager)}, lines=10) as shell:
        shell.wait_for(ASKED)
        shell.ask("SELECT concat(chr(27), '[2J') AS a, chr(8238) AS b FROM range(50);", "paged", ASKED)
    text = paged.read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[2J" in text


def test_shell_needs_a_terminal_for_its_answers_query_10(home: Path, tmp_path: Path) -> None:
    with terminal(home, "sql", "-o", "arrow") as shell:
        shell.wait_for(".format FORMAT FILE")
        assert shell.wait_for_end() == 2
