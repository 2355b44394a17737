"""``-v`` and ``--log-file``: what a command did, for people (OBSERVE-10)."""

import argparse
import logging
import stat
from pathlib import Path

import pytest

from odf_engines.stage_metrics import StageMetrics
from odf_node.adapters.observing import RUNS, RunLines
from odf_node.cli.explaining import explained
from odf_node.cli.main import main
from odf_node.ports.observing import DatasetVersion, Run, RunKind

SALES = DatasetVersion(dataset_id="did:odf:a", name="shop.sales", block="f1620aa")


def lines_of(run: Run, caplog: pytest.LogCaptureFixture) -> list[str]:
    with caplog.at_level(logging.INFO, RUNS.name), RunLines().observing(run):
        pass
    return [each.getMessage() for each in caplog.records]


def test_run_is_told_with_its_stages(caplog: pytest.LogCaptureFixture) -> None:
    stages = (StageMetrics(stage="read", seconds=0.5, rows_in=1_200, rows_out=1_199, bad_rows=1),)
    run = Run(kind=RunKind.INGEST, dataset=SALES, written=SALES, rows=1_199, bad_rows=1, stages=stages)
    whole, stage = lines_of(run, caplog)
    assert whole.startswith("ingest shop.sales: wrote block f1620aa, 1,199 rows added, 1 set aside, 0.")
    assert stage == "  read: 0.500 s; rows: 1,200 in, 1,199 out, 1 bad"


def test_step_is_told_with_its_parts(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(kind=RunKind.REEXECUTION, dataset=SALES, block_number=4, engine="spark", milliseconds={"computing": 120})
    whole, part = lines_of(run, caplog)
    assert whole.startswith("re-execute shop.sales, block 4, by spark: wrote nothing, 0.")
    assert part == "  computing: 0.120 s"


def test_run_that_fails_is_told_with_the_kind_of_its_error_alone(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(kind=RunKind.PULL, dataset=SALES, peer="http://peer:8080")
    with (
        caplog.at_level(logging.INFO, RUNS.name),
        pytest.raises(ValueError, match="hunter2"),
        RunLines().observing(run),
    ):
        raise ValueError("hunter2")
    (line,) = (each.getMessage() for each in caplog.records)
    assert line.startswith("pull shop.sales, with http://peer:8080: failed after 0.")
    assert line.endswith(" (ValueError)")


@pytest.mark.parametrize("words", [["-v", "list"], ["list", "-v"], ["list", "--verbose"]])
def test_command_says_how_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["--home", str(tmp_path / "home"), *words]) == 0
    assert "list ended after 0." in capsys.readouterr().err
    assert not logging.getLogger("odf_node").handlers


def test_command_without_it_says_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path / "home"), "list"]) == 0
    assert "ended" not in capsys.readouterr().err


def test_file_has_times_and_the_place_of_an_error_and_is_appended_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "node.log"
    words = ["--home", str(tmp_path / "home"), "--log-file", str(log)]
    assert main([*words, "list"]) == 0
    assert main(["tail", "no\x1b[2Jsuch", *words]) == 3
    assert "Traceback" not in capsys.readouterr().err
    first, second, *rest = log.read_text().splitlines()
    assert first[:4].isdecimal()
    assert "Z odf_node list begins: odf-node " in first
    assert second.endswith("exit code 0")
    assert any("naming.py" in each for each in rest)
    assert rest[-1].endswith("exit code 3")
    assert "\x1b" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_warning_is_said_on_the_terminal_although_there_is_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = argparse.Namespace(verbose=False, log_file=str(tmp_path / "node.log"))

    def run() -> int:
        logging.getLogger("odf_node.observing").warning("12 spans were not delivered")
        logging.getLogger("odf_node.runs").info("ingest")
        return 0

    assert explained("ingest", arguments, run) == 0
    assert capsys.readouterr().err == "12 spans were not delivered\n"
    assert "12 spans" in (tmp_path / "node.log").read_text()


def test_file_that_cannot_be_opened_ends_the_command_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, manifest = tmp_path / "home", tmp_path / "a.yaml"
    manifest.write_text("kind: DatasetSnapshot\nversion: 1\ncontent: {name: a, kind: Root, metadata: []}\n")
    assert main(["--home", str(home), "add", str(manifest), "--log-file", str(tmp_path / "no" / "log")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
    assert not home.exists()
