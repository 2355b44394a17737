"""``search``: datasets by words, as they are in force, here and as other nodes tell them (HOME-53)."""

import json
from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_protocol.exchange.words import match_texts
from support.described_datasets import add_described
from support.offers import Judge, PublisherHome, root_chain

ROWS = [
    ("sales.2024", "Sales of all shops", "shop, Umsatz", "day DATE, amount BIGINT"),
    ("weather", "What the shops saw of the sky", "Größe", "day DATE, rain BIGINT"),
    ("staff", "People", "work", "name STRING, Hours BIGINT"),
]


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    add_described(tmp_path / "home", ROWS)
    capsys.readouterr()
    return tmp_path / "home"


def search(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert main(["--home", str(home), "search", *words, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sales"], {"sales.2024": ["name", "description"]}),
        (["SHOP"], {"sales.2024": ["description", "keyword shop"], "weather": ["description"]}),
        (["shop", "rain"], {"weather": ["description", "column rain"]}),
        (["grösse"], {"weather": ["keyword Größe"]}),
        (["hours"], {"staff": ["column Hours"]}),
        (["day"], {"sales.2024": ["column day"], "weather": ["column day"]}),
        (["shop", "nothing"], {}),
        (["Append"], {}),
    ],
)
def test_datasets_are_found_by_what_they_say(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], found: dict[str, list[str]]
) -> None:
    assert {row["name"]: row["where"] for row in search(home, capsys, *words)} == found


def test_description_that_is_no_longer_in_force_finds_nothing(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = tmp_path / "event.yaml"
    event.write_text("kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo, description: Colleagues}\n")
    assert main(["--home", str(home), "change", "staff", str(event)]) == 0
    capsys.readouterr()
    assert search(home, capsys, "people") == []
    assert [row["name"] for row in search(home, capsys, "colleagues")] == ["staff"]


def test_columns_of_rows_are_found(judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PublisherHome(judge).keep(root_chain(tmp_path))
    (found,) = search(judge.home.path, capsys, "people")
    assert (found["name"], found["where"]) == ("cities", ["column people"])


def test_more_than_are_shown_are_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home), "search", "day", "--most", "1"]) == 0
    out, err = capsys.readouterr()
    assert ("sales.2024" in out, "weather" in out) == (True, False)
    assert "there are more than 1" in err


def test_words_are_asked_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home), "search", "http://localhost:1"]) == 2
    assert "say a word" in capsys.readouterr().err


def test_every_word_has_to_be_somewhere() -> None:
    texts = [("name", "a.b"), ("description", "C d")]
    assert match_texts(["a", "c"], texts) == ("name", "description")
    assert match_texts(["a", "x"], texts) == ()
