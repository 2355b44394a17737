"""The tutorial for a CSV file of one's own: every command in it says what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

from support.nodes import RealNode

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.usefixtures("light_engines")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-csv"
PAGE = (EXAMPLE / "README.md").read_text()
ADDRESS = "http://localhost:8080"
OWN = re.compile(r"did:odf:fed01[0-9a-f]{64}|\([0-9a-f]{8}\)")
"""What differs from home to home: the identity of a dataset, and so the hashes of its blocks."""


def shown_commands(text: str) -> list[tuple[list[str], str]]:
    """The words behind each ``$ odf-node`` of the page, and what the page shows below it."""
    blocks = "".join(re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    commands = re.findall(r"^\$ odf-node ([^\n]+)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)
    return [(shlex.split(words), shown) for words, shown in commands]


def check(node: RealNode, text: str, address: str) -> int:
    """Run the commands one after the other and compare what they say; how many there were."""
    commands = shown_commands(text)
    for words, shown in commands:
        ran = node.must(*(word.replace(ADDRESS, address) for word in words))
        assert OWN.sub("", ran.out + ran.err) == OWN.sub("", shown), words
    return len(commands)


def test_commands_of_the_tutorial_say_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    mine, elsewhere = PAGE.split("## 5. ")
    publisher = RealNode(tmp_path / "publisher", has_engine=True)
    reader = RealNode(tmp_path / "reader", has_engine=True)

    assert check(publisher, mine, ADDRESS) == 8
    with publisher.serving() as address:
        assert check(reader, elsewhere, address) == 4
