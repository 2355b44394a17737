"""README and guides say what the program does: commands, options and exit codes in them are those of the program."""

import argparse
import importlib.util
import re
from pathlib import Path

import pytest

from odf_node.cli import registry
from odf_node.cli.main import build_parser
from odf_node.cli.run import EXIT_CODES

REPOSITORY = Path(__file__).parents[2]
SHORT = (REPOSITORY / "README.md").read_text()
README = "".join(
    [
        SHORT,
        *(
            (REPOSITORY / "spec/guides" / name).read_text()
            for name in ("commands.md", "installing.md", "queries.md", "reference.md", "supported-sql.md", "trust.md")
        ),
    ]
)
"""With the pages that its tables stand in."""
GUIDES = [REPOSITORY / "examples/own-csv/README.md", REPOSITORY / "spec/guides/running-in-public.md"]


def section(title: str) -> str:
    """The text below a heading of the README or of these pages, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", README, flags=re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def first_cells(title: str) -> list[str]:
    """The first column of the table below a heading."""
    rows = [line.split("|")[1].strip() for line in section(title).splitlines() if line.startswith("|")]
    return rows[2:]


def options_of(command: str) -> set[str]:
    """Every option of a command and of its actions."""
    found: set[str] = set()
    waiting: list[argparse.ArgumentParser] = [build_parser(command)]
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            found |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                waiting += [
                    child for name, child in action.choices.items() if parser.prog != "odf-node" or name == command
                ]
    return found


def test_page_of_commands_is_made_of_their_modules() -> None:
    place = REPOSITORY / "spec" / "guides" / "list_commands.py"
    spec = importlib.util.spec_from_file_location("list_commands", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.format_page(), f"run {place}"


def test_readme_stays_what_a_newcomer_reads() -> None:
    lines = SHORT.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 120] == []


def test_exit_codes_are_those_of_the_program() -> None:
    documented = {int(cell) for cell in first_cells("Exit codes")}
    assert documented >= {0, 130} | set(EXIT_CODES.values())
    assert documented <= {0, 130, 143} | set(EXIT_CODES.values())


@pytest.mark.parametrize("text", [README, *(path.read_text() for path in GUIDES)], ids=["README", "csv", "public"])
def test_every_option_that_is_shown_with_a_command_exists(text: str) -> None:
    shown = re.findall(r"odf-node ([a-z]+)([^\n#`]*)", text) + re.findall(r"`([a-z]+)( [^`]*--[^`]*)`", text)
    used = [(command, option) for command, rest in shown for option in re.findall(r"(?<!\S)\[?(--?[a-z][a-z-]*)", rest)]
    assert len(used) > 3
    assert [(command, option) for command, option in used if option not in options_of(command)] == []


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", README))))
def test_every_option_that_is_named_alone_exists_somewhere(option: str) -> None:
    assert any(option in options_of(command) for command in registry.list_names()) or option in {"--version"}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`?(examples/[\w./-]+\.\w+)", README))))
def test_files_that_are_named_are_there(name: str) -> None:
    assert (REPOSITORY / name).exists()


def test_tests_that_prove_claims_of_the_readme_are_there() -> None:
    named = re.findall(r"`([\w/.]+)` \|$", section("What is proved"), flags=re.MULTILINE)
    assert len(named) > 4
    assert [name for name in named if not (REPOSITORY / "tests" / name).exists()] == []


def test_contributors_see_each_toy_extension() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    toys = [path for path in (REPOSITORY / "tests/extension").glob("*.py") if not path.name.startswith("test_")]
    assert toys
    assert [path.name for path in toys if f"`tests/extension/{path.name}`" not in text] == []
    assert f"```python\n{(REPOSITORY / 'tests/extension/counting_work.py').read_text()}```" in text


def test_places_to_which_contributors_are_sent_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:protocol|engines|node|spec|tests|examples)/[\w./-]+)`", text))
    assert len(named) > 15
    assert sorted(place for place in named if not (REPOSITORY / place).exists()) == []
