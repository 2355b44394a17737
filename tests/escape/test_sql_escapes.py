"""Clauses GATE-1 to GATE-4 and SANDBOX-15: strangers' SQL, the gate that rejects it, and the layer behind the gate.

Two starts of Spark without the gate: one in the sandbox with the switches, one in which the host is there and the
switches are off. The second is the control: what succeeds there was stopped by a layer and not by accident. What only
the gate stops has its control in the first, where it succeeds although all other layers are there.
"""

import functools
import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import InvalidQueryError
from odf_engines.host.runtime import python_command
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.profile import build_command
from odf_engines.sandbox.system_calls import open_filter
from odf_spark.gate.functions import FUNCTIONS
from support import sql_program
from support.engine_switches import LISTS, as_lines, as_reported, missing_on_page, stated_values
from support.escapes import SECRET
from support.sql_escapes import SQL_PROBES
from support.transforms import transform_request

pytestmark = pytest.mark.spark

SWITCHED_OFF = {
    "spark.sql.restrictedMode.enabled": "false",
    "spark.sql.runSQLOnFiles": "true",
    "spark.sql.scripting.enabled": "true",
    "spark.sql.variable.substitute": "true",
}
SWITCH_ALONE = "file_as_relation_with_its_switch_alone"

# On the analysed plan alone, for Spark without switches: a query, and part of the rejection (empty: none).
ANALYSED = (
    ("declared-relation", "SELECT sum(id + 1) AS n FROM declared WHERE id > 0 GROUP BY id % 2 ORDER BY n", ""),
    (
        "rows-of-its-own",
        "WITH t AS (SELECT * FROM VALUES (1), (2) AS v(x)) SELECT * FROM t JOIN range(3) ON x = id",
        "",
    ),
    ("subquery", "SELECT * FROM declared WHERE id IN (SELECT max(id) FROM declared)", ""),
    ("undeclared-relation", "SELECT * FROM undeclared", "no declared relation"),
    ("undeclared-in-subquery", "SELECT (SELECT max(id) FROM undeclared) AS x FROM declared", "no declared relation"),
    ("undeclared-in-table", "WITH t AS (SELECT * FROM undeclared) SELECT * FROM t", "no declared relation"),
    ("file", "SELECT * FROM text.`{bait}`", "no declared relation"),
    ("reflection", "SELECT reflect('java.lang.System', 'lineSeparator') AS x FROM declared", "engine's own"),
    ("function-from-outside", "SELECT mine(id) AS x FROM declared", "engine's own"),
)
PARAMETERS = [pytest.param(probe, id=probe.name) for probe in SQL_PROBES]
LAYERED = [probe for probe in SQL_PROBES if probe.other != "session"]
BAIT = "bait of the host"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def spark_without_gate(spark_engine, host_folder):
    """Answers of Spark without the gate: behind the other layers, and without them."""
    folder = host_folder
    bait = folder / "bait"
    bait.mkdir()
    (bait / "file").write_text(BAIT + "\n")
    handler = functools.partial(QuietHandler, directory=str(bait))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        facts = {"bait": bait / "file", "folder": bait, "port": server.server_address[1]}
        queries = {probe.name: probe.sql.format(**facts) for probe in SQL_PROBES}
        session = spark_engine.open(folder, Limits())
        (session.folder / "in" / "program.py").write_bytes(Path(sql_program.__file__).read_bytes())

        def ask(queries, settings, more=(), less=()):
            asked = {
                "queries": queries,
                "settings": settings,
                "options": session.guest.arguments["java_options"],
                "analysed": {},
            }
            if more:
                asked["analysed"] = {name: query.format(**facts) for name, query, _ in ANALYSED}
            *python, _ = python_command("odf_spark.worker")
            program = [*python, "/exchange/in/program.py", json.dumps(asked)]
            descriptor = open_filter()
            try:
                words = build_command(find_bubblewrap(), session.profile(), program, filter_descriptor=descriptor)
                at = words.index("--remount-ro")
                words[at:at] = more
                words = [word for word in words if word not in less]
                ended = subprocess.run(
                    words, pass_fds=[descriptor], capture_output=True, text=True, timeout=600, check=False, env={},
                    stdin=subprocess.DEVNULL,
                )  # fmt: skip
            finally:
                os.close(descriptor)
            assert ended.returncode == 0, ended.stderr[-2000:]
            return json.loads(ended.stdout)

        behind = ask(queries, {})
        first = {SWITCH_ALONE: f"SET spark.sql.runSQLOnFiles = false;;{queries['file_as_relation']}"}
        host = ["--setenv", "ODF_SECRET", SECRET, "--bind", str(bait), str(bait)]
        host += ["--ro-bind", "/bin/bash", "/usr/bin/bash", "--symlink", "usr/bin", "/bin"]
        has_escaped = (bait / "made").exists()
        without = ask(
            first | {each.name: queries[each.name] for each in LAYERED}, SWITCHED_OFF, host, ["--unshare-net"]
        )
        assert (has_escaped, (bait / "made").exists()) == (False, True)
        yield behind, without
        server.shutdown()
        session.close()


@pytest.mark.parametrize("probe", [each for each in PARAMETERS if each.values[0].complaint])
def test_gate_rejects_it(spark_session, probe):
    with pytest.raises(InvalidQueryError, match=probe.complaint):
        spark_session.transform(transform_request(probe.sql.split(";;")[0]))


@pytest.mark.parametrize("probe", [each for each in PARAMETERS if each.values[0].proof])
def test_layer_behind_the_gate_stops_it(spark_without_gate, probe):
    answer = spark_without_gate[0][probe.name]
    assert probe.proof in answer.get("said", answer.get("got", ""))
    assert BAIT not in str(answer)
    assert SECRET not in str(answer)


@pytest.mark.parametrize("probe", [pytest.param(probe, id=probe.name) for probe in LAYERED])
def test_it_succeeds_without_any_layer(spark_without_gate, probe):
    answer = spark_without_gate[1][probe.name]
    assert answer["outcome"] == "done", answer
    if probe.proof:
        assert probe.proof not in answer["got"] or probe.proof == "[]"
    if probe.name.startswith(("view_over_text", "table_over", "file_as", "csv_file_as")):
        assert BAIT in answer["got"]


@pytest.mark.parametrize("probe", [each for each in PARAMETERS if each.values[0].other == "session"])
def test_it_succeeds_behind_the_gate_so_the_gate_is_what_stops_it(spark_without_gate, probe):
    assert spark_without_gate[0][probe.name]["outcome"] == "done"


def test_switch_alone_keeps_files_from_being_relations(spark_without_gate):
    answer = spark_without_gate[1][SWITCH_ALONE]
    assert "TABLE_OR_VIEW_NOT_FOUND" in answer["said"]


def test_text_in_a_query_never_becomes_what_the_machine_has_under_a_name(spark_session):
    grade = "SELECT event_time, '${system:os.version}' AS x FROM orders"
    assert spark_session.transform(transform_request(grade)).schema.names[-1] == "x"


@pytest.mark.parametrize(("name", "complaint"), [pytest.param(n, c, id=n) for n, _, c in ANALYSED])
def test_analysed_plan_is_judged_by_itself(spark_without_gate, name, complaint):
    answer = spark_without_gate[1][name]
    assert answer["outcome"] == ("refused" if complaint else "done"), answer
    assert complaint in answer.get("said", "")


def test_every_function_of_the_engine_has_a_grade_and_no_other(spark_without_gate):
    """Clauses GATE-4 and GATE-17: what a later Spark brings, or takes away, makes this fail until it was looked at."""
    listed = set(spark_without_gate[0]["functions"])
    assert (listed - set(FUNCTIONS), set(FUNCTIONS) - listed) == (set(), set())
    assert len(listed) > 500


def test_every_setting_of_the_engine_is_known_with_its_default_switch_4(spark_without_gate):
    """What a later Spark brings, takes away or changes makes this fail until its page was looked at."""
    found = as_lines(spark_without_gate[0]["defaults"])
    known = (LISTS / "spark.txt").read_text()
    assert sorted({*found.splitlines()} ^ {*known.splitlines()}) == []
    assert missing_on_page("spark", spark_without_gate[0]["defaults"]) == []
    assert len(spark_without_gate[0]["defaults"]) > 1_000


def test_settings_of_the_engine_stand_at_what_the_page_of_switches_says_switch_4(spark_without_gate):
    stands_at = spark_without_gate[0]["settings"]
    stated = stated_values("spark")
    assert {name: as_reported(stands_at.get(name)) for name in stated} == stated
