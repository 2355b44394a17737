"""A recorded program is started again on the versions that it had; what it writes is compared, and the home stays."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.audited_homes import WAIT_S, AuditedHome
from support.command_line import environment_of

CREATE = """\
import odf_node
with odf_node.open() as node:
    node.create_table("prices", "product STRING, price DOUBLE", key=["product"])
    node.create_table("stock", "product STRING, pieces BIGINT", key=["product"])
    node.create_table("worth", "product STRING, worth DOUBLE", key=["product"])
"""
LOAD = """\
import json, sys
import odf_node
with odf_node.open() as node:
    node.table(sys.argv[1]).upsert(json.loads(sys.argv[2]))
"""
REPORT = """\
import odf_node
with odf_node.open("HOME") as node:
    prices = {row["product"]: row["price"] for row in node.table("prices").state().to_arrow().to_pylist()}
    stock = node.table("stock").state().to_arrow().to_pylist()
    print("products:", len(stock))
    node.table("worth").upsert(
        [{"product": row["product"], "worth": prices.get(row["product"], 0.0) * row["pieces"]} for row in stock]
    )
"""
GUESS = """\
import random
import odf_node
with odf_node.open() as node:
    node.table("worth").upsert([{"product": "bread", "worth": random.random()}, {"product": "tea", "worth": 1.0}])
"""


class Shop:
    """A home with three tables, two of which move, and programs of a user."""

    def __init__(self, folder: Path) -> None:
        self.audited = AuditedHome(folder / "home")
        self.folder = folder / "programs"
        self.folder.mkdir()
        self.run("create.py", CREATE)

    def run(self, name: str, text: str, *words: str) -> str:
        """Run a program; gives the identity of its run."""
        script = self.folder / name
        script.write_text(text.replace("HOME", str(self.audited.folder)))
        self.audited.run_script(script, *words)
        return str(self.audited.rows("command = 'run'")[-1]["run"])

    def load(self, table: str, **values: float) -> None:
        """Upsert rows."""
        column = {"prices": "price", "stock": "pieces"}[table]
        self.run("load.py", LOAD, table, json.dumps([{"product": name, column: n} for name, n in values.items()]))

    def rerun(self, *words: str | Path, **more: str) -> "subprocess.CompletedProcess[str]":
        """Start a run again, as a process of its own."""
        command = [sys.executable, "-m", "odf_node", "audit", "rerun", *map(str, words)]
        environment = environment_of(self.audited.folder, **more)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)

    def snapshot(self) -> dict[str, tuple[int, int, bytes]]:
        """Give mode, time and bytes of each file, but of what SQLite keeps beside the database."""
        return {
            str(path.relative_to(self.audited.folder)): (
                path.stat().st_mode,
                path.stat().st_mtime_ns,
                path.read_bytes(),
            )
            for path in sorted(self.audited.folder.rglob("*"))
            if path.is_file() and not path.name.endswith(("-wal", "-shm"))
        }


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("rerun"))
    shop.load("prices", bread=2.5, milk=1.0)
    shop.load("stock", bread=4, milk=10)
    return shop


def test_run_is_started_again_on_its_versions_whatever_came_later(shop: Shop, tmp_path: Path) -> None:
    """AUDIT-21, AUDIT-23, AUDIT-24: equal; and the home is not touched, though the program names it."""
    run = shop.run("report.py", REPORT)
    shop.load("prices", bread=3.5)
    shop.load("stock", bread=5, tea=1)
    later = shop.snapshot()

    kept = tmp_path / "kept"
    done = shop.rerun(run, "--keep", kept, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "products: 2\n" in done.stderr
    told: Any = json.loads(done.stdout)
    (write,) = told["writes"]
    assert (told["equal"], write["dataset"], write["rows"], write["rowsAgain"]) == (True, "worth", 2, 2)
    assert shop.snapshot() == later
    assert not list(shop.audited.folder.parent.glob(".odf-node-rerun-*"))
    state = AuditedHome(kept).run("sql", "-c", "SELECT product, worth FROM worth__state ORDER BY 1", "-o", "csv")
    assert state.replace('"', "").split() == ["product,worth", "bread,10", "milk,10"]
    assert [*(kept / "keys").rglob("*.pem")] == [kept / "keys" / "node.pem"]  # no key of the home


def test_what_is_not_the_same_again_is_shown_row_by_row(shop: Shop) -> None:
    """AUDIT-24: exit code, counts and the first rows that differ."""
    run = shop.run("guess.py", GUESS)
    before = shop.snapshot()
    done = shop.rerun(run, "-o", "json")
    told: Any = json.loads(done.stdout)
    assert (done.returncode, told["equal"], told["exitCode"]) == (4, False, 0)
    (write,) = told["writes"]
    (pair,) = [each for each in write["shown"] if each["first"]["op"] != 2]
    assert (write["different"], pair["first"]["product"], pair["again"]["product"]) == (1, "bread", "bread")
    assert pair["first"]["worth"] != pair["again"]["worth"]
    assert "system_time" not in pair["first"]
    assert shop.snapshot() == before


def test_run_that_makes_tables_is_compared_by_their_names(shop: Shop) -> None:
    """AUDIT-24: they have other identities."""
    run = shop.run("make.py", CREATE.replace('"prices"', '"a"').replace('"stock"', '"b"').replace('"worth"', '"c"', 1))
    told: Any = json.loads(shop.rerun(run, "-o", "json").stdout)
    assert (told["equal"], [each["dataset"] for each in told["writes"]]) == (True, ["a", "b", "c"])


def test_commands_are_started_again_too(shop: Shop) -> None:
    """AUDIT-21: a program that writes nothing prints again what it printed."""
    ask = [sys.executable, "-m", "odf_node", "sql", "-c", "SELECT count(*) AS n FROM prices__state"]
    environment = environment_of(shop.audited.folder)
    subprocess.run(ask, env=environment, check=True, capture_output=True, timeout=WAIT_S)
    run = str(shop.audited.rows("command = 'run'")[-1]["run"])
    shop.load("prices", rice=9.0)
    done = shop.rerun(run)
    assert done.returncode == 0, done.stderr
    assert "\n2\n" in done.stdout
    assert "wrote nothing" in done.stdout
    assert "3\n" in subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout


def refusal(shop: Shop, *words: str) -> str:
    """Give the one line with which a rerun is refused; nothing is left of it."""
    done = shop.rerun(*words)
    assert done.returncode in {2, 3, 5}, (done.stdout, done.stderr)
    line = [each for each in done.stderr.splitlines() if not each.startswith(("notice: ", "starting in "))]
    assert len(line) == 1, done.stderr
    assert not list(shop.audited.folder.parent.glob(".odf-node-rerun-*"))
    return line[0]


def test_another_program_is_not_taken_for_the_one_that_ran(shop: Shop) -> None:
    """AUDIT-22: its file has another hash; --changed-code takes it and says so."""
    run = shop.run("report.py", REPORT)
    script = shop.folder / "report.py"
    script.write_text(script.read_text().replace("products:", "articles:"))
    assert "--changed-code" in refusal(shop, run)
    done = shop.rerun(run, "--changed-code")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("articles: ")
    assert "the code is another one" in done.stderr
    script.unlink()
    assert "not here any more" in refusal(shop, run)


def test_words_that_were_left_out_are_given_again(shop: Shop) -> None:
    """AUDIT-22: secrets are not recorded."""
    text = REPORT + "import sys\nassert sys.argv[1:] == ['--token', 'hunter2']\n"
    run = shop.run("secret.py", text, "--token", "hunter2")
    line = refusal(shop, run)
    assert ("after --" in line, "hunter2" in line) == (True, False)
    done = shop.rerun(run, "--", sys.executable, "secret.py", "--token", "hunter2")
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_program_that_fails_or_takes_too_long_is_no_success(shop: Shop) -> None:
    """AUDIT-24: it is ended with all that it started."""
    wait = REPORT + "import os, time\nif 'ODF_NODE_RERUN_OF' in os.environ:\n    time.sleep(600)\n"
    assert "--seconds" in refusal(shop, shop.run("wait.py", wait), "--seconds", "30")
    fail = REPORT + "import os\nif 'ODF_NODE_RERUN_OF' in os.environ:\n    raise SystemExit(3)\n"
    done = shop.rerun(shop.run("fail.py", fail))
    assert (done.returncode, "exit code 3" in done.stderr) == (1, True)


def test_copy_is_the_only_home_that_a_rerun_opens(shop: Shop, tmp_path: Path) -> None:
    """AUDIT-23: another home that stands there is refused, not written."""
    other = AuditedHome.create(tmp_path / "other")
    before = [row["id"] for row in other.rows()]
    text = f"with odf_node.open({str(other.folder)!r}) as node:\n    len(node.table('cities').to_arrow())\n"
    done = shop.rerun(shop.run("other.py", REPORT + text))
    assert done.returncode == 1
    assert "works on a copy" in done.stderr
    assert [row["id"] for row in other.rows("run IS NULL OR record NOT LIKE '%other.py%'")][: len(before)] == before


def test_run_that_goes_on_and_versions_that_moved_or_are_gone_are_refused(shop: Shop) -> None:
    """AUDIT-22: with what can be done."""
    again = (
        "print('done', flush=True)\ninput()\nwith odf_node.open() as node:\n    len(node.table('prices').to_arrow())\n"
    )
    script = shop.folder / "goes_on.py"
    script.write_text(REPORT.replace("HOME", str(shop.audited.folder)) + again)
    process = shop.audited.start(script)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("products")
    assert process.stdout.readline() == "done\n"
    run = str(shop.audited.rows("command = 'run'")[-1]["run"])
    assert "still going" in refusal(shop, run)
    shop.load("prices", plum=0.5)
    process.communicate("\n", timeout=WAIT_S)
    assert "others wrote 'prices'" in refusal(shop, run)
    later = shop.run("report.py", REPORT)
    shop.audited.run("delete", "stock", "--yes")
    assert "'stock'" in refusal(shop, later)


def test_run_whose_own_rows_are_not_here_is_refused_before_it_starts(shop: Shop, tmp_path: Path) -> None:
    """AUDIT-22: what a derivative's step wrote was freed; there is nothing to compare with."""
    (tmp_path / "dear.yaml").write_text(
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: dear\n  kind: Derivative\n  metadata:\n"
        "    - kind: SetTransform\n      inputs: [{datasetRef: prices, alias: p}]\n"
        "      transform: {kind: Sql, engine: datafusion, query: 'SELECT event_time, op, product, price FROM p'}\n"
    )
    command, environment = [sys.executable, "-m", "odf_node"], environment_of(shop.audited.folder)
    for words in (("add", str(tmp_path / "dear.yaml")), ("pull", "dear")):
        done = subprocess.run(
            [*command, *words], env=environment, check=False, capture_output=True, text=True, timeout=WAIT_S
        )
        assert done.returncode == 0, done.stderr
    run = str(shop.audited.rows("command = 'run'")[-1]["run"])
    subprocess.run(
        [*command, "cache", "drop", "dear"], env=environment, check=True, capture_output=True, timeout=WAIT_S
    )
    assert "'odf-node cache rebuild dear' brings them back" in refusal(shop, run)
