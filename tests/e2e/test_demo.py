"""The tutorial is a test: the whole story with real processes, sockets, Spark and sandbox."""

import csv
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "covid" / "demo.sh"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Story:
    """What the demo printed, and the folder with the homes of its nodes."""

    text: str
    folder: Path

    def part(self, number: int) -> str:
        """Return the text of a chapter, counted from 1."""
        return re.split(r"^== ", self.text, flags=re.MULTILINE)[number]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("demo")
    environment = os.environ | {
        "DEMO_FOLDER": str(folder),
        "AGENCY_PORT": "0",
        "FORGER_PORT": "0",
        "CABLE_PORT": "0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    run = subprocess.run(
        [DEMO], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1700
    )
    assert run.returncode == 0, run.stdout
    return Story(run.stdout, folder)


def odf_node(story: Story, *words: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "odf_node", *words], cwd=story.folder, capture_output=True, text=True, check=True
    )
    return run.stdout


def test_five_versions_become_five_slices_of_appends_and_corrections(story: Story) -> None:
    rows = odf_node(story, "tail", "countries.daily", "--home", "agency", "-n", "100000", "-o", "csv")
    counts = Counter((row["system_time"][:10], row["op"]) for row in csv.DictReader(rows.splitlines()))
    lines = [f"{day},{op},{count}" for (day, op), count in sorted(counts.items())]

    assert lines[0] == "2020-10-01,0,47564"
    assert lines[1:4] == ["2020-10-02,0,188", "2020-10-02,2,206", "2020-10-02,3,206"]
    assert [line.split(",")[0] for line in lines if line.split(",")[1] == "0"] == [
        "2020-10-01", "2020-10-02", "2020-10-03", "2020-10-08", "2020-11-01",
    ]  # fmt: skip


def test_each_day_is_joined_with_the_population_that_was_known_on_it(story: Story) -> None:
    rows = re.findall(r"^(2020-\S+)T00:00:00Z +(\d+) +(\S+) +(\S+) +2020-10-08T(\d+)", story.part(1), re.MULTILINE)

    assert rows == [
        ("2020-04-19", "8261", "null", "null", "14"),  # nobody had said
        ("2020-09-30", "743216", "128932753", "576.44", "14"),
        ("2020-10-01", "748315", "127792286", "585.57", "14"),
        ("2020-10-02", "753090", "127792286", "589.31", "15"),  # waited for the watermark
    ]


def test_interrupted_pull_goes_on_from_what_had_arrived(story: Story) -> None:
    assert "the line broke after 250,000 bytes" in story.part(2)
    assert "(exit code 5)" in story.part(2)


def test_auditor_accepts_after_re_execution_of_every_step(story: Story) -> None:
    assert "4 steps re-executed here with an equal result" in story.part(2)
    assert "countries.daily: valid" in story.part(2)


def test_as_of_gives_the_figures_known_on_each_day(story: Story) -> None:
    figures = [
        re.findall(r"^(Czechia|India|Spain) +(\d+)", text, re.MULTILINE) for text in story.part(2).split("--as-of")
    ]

    assert figures[1] == [("Czechia", "68919"), ("India", "6225763"), ("Spain", "769188")]
    assert figures[2][:3] == [("Czechia", "70763"), ("India", "6312584"), ("Spain", "769188")]


def test_changelog_shows_the_correction_in_between(story: Story) -> None:
    corrections = re.findall(r"^\S+ +([23]) +Czechia +(\d+)", story.part(2), re.MULTILINE)

    assert corrections == [("2", "68919"), ("3", "70763")]


def test_forgery_under_another_key_is_rejected_for_the_key(story: Story) -> None:
    first = story.part(3).split("stolen the agency's key")[0]
    assert "signed by the dataset key (HEAD-4)" in first
    assert "(exit code 4)" in first


def test_forgery_with_the_stolen_key_is_rejected_for_the_cell(story: Story) -> None:
    second = story.part(3).split("stolen the agency's key")[1]
    forged = re.search(r"2020-10-31, Italy\s+deaths\s+(\d+)\s+(\d+)", second)
    assert forged, second
    assert int(forged[2]) - int(forged[1]) == 1000


def test_rejections_leave_the_auditors_node_as_it_was(story: Story) -> None:
    checksums = re.findall(r"before (\w+), after (\w+)", story.part(3))
    assert len(checksums) == 2
    assert all(before == after for before, after in checksums)


def test_honest_version_is_accepted_after_the_forgeries(story: Story) -> None:
    heads = {
        tuple(odf_node(story, "log", "countries.severity", "--home", home, "-o", "oneline", "-n", "1").split()[:2])
        for home in ("agency", "auditor")
    }
    assert len(heads) == 1


def test_newsroom_takes_what_both_auditors_vouch_for_by_itself_and_nothing_before(story: Story) -> None:
    before, after = story.part(4).split("where the auditors are")
    assert "this node has no datasets yet" in before
    rows = re.findall(r"^(countries\.\w+) .* (\S+)$", after.split("odf-node trust")[0], re.MULTILINE)
    assert rows == [("countries.daily", "attested"), ("countries.severity", "attested")]
    assert "attested by 2 of 2 auditors (auditor, university)" in after
    log = (story.folder / "newsroom.log").read_text()
    assert {'"subscription-waits"', '"subscription-updated"'} <= set(re.findall(r'"subscription-\w+"', log))
    commands = re.findall(r"^\$ odf-node pull (.*) --home newsroom", story.text, re.MULTILINE)
    assert [command.rpartition("/")[2] for command in commands] == ["rumours"]


def test_liar_is_found_out_by_those_whom_it_told_two_stories(story: Story) -> None:
    after = story.part(4).split("which newest signature they were shown")[1]
    assert re.search(r"^rumours .*FROZEN", after, re.MULTILINE)
    assert "signed two histories" in after
    judged = after.split("$ odf-node judge proof.json")[1]
    assert judged.startswith("\nPROVED: the key did:key:")
    assert "(exit code 4)" in judged


def test_demo_tells_how_long_it_took(story: Story) -> None:
    assert re.search(r"All of it took \d+ seconds", story.part(5))
