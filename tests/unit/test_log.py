"""``odf-node log``: short unless asked for all."""

import json
from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_protocol.events import SetInfo
from support.offers import Judge, PublisherHome, root_chain


@pytest.fixture
def home(judge: Judge, tmp_path: Path) -> str:
    chain = root_chain(tmp_path)
    for number in range(20):
        chain.add(SetInfo(description=str(number)))
    PublisherHome(judge).keep(chain)
    return str(judge.home.path)


@pytest.mark.parametrize(
    ("words", "count", "stated"),
    [
        ([], 20, "4 older blocks not shown; --all shows them\n"),
        (["-n", "23"], 23, "1 older block not shown; --all shows them\n"),
        (["-n", "24"], 24, ""),
        (["--all"], 24, ""),
    ],
)
def test_log_shows_the_newest_blocks_and_says_how_many_are_older(
    home: str, capsys: pytest.CaptureFixture[str], words: list[str], count: int, stated: str
) -> None:
    assert main(["--home", home, "log", "cities", "-o", "json", *words]) == 0
    shown = capsys.readouterr()
    numbers = [json.loads(line)["content"]["sequenceNumber"] for line in shown.out.splitlines()]
    assert numbers == list(range(23, 23 - count, -1))
    assert shown.err == stated


def test_all_and_a_number_contradict_each_other(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--home", home, "log", "cities", "--all", "-n", "3"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
