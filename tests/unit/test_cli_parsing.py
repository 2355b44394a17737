"""Words of a command line: where options may stand, and what is offered for a word that is not known."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from odf_node.cli import registry
from odf_node.cli.context import CommandContext, parse_time
from odf_node.cli.main import build_parser, find_command, main
from odf_node.cli.parsing import CommandParser, suggest, whole_number
from odf_node.errors import UsageError

COMMANDS = registry.list_names()


def parse(*words: str) -> argparse.Namespace:
    command, _ = find_command(words)
    return build_parser(command).parse_args(words)


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Run the program on words it rejects; the lines it says."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["--home", "/h", "--system-time", "2020-01-01T00:00:00Z", "-q", "list"],
        ["list", "--home", "/h", "--system-time", "2020-01-01T00:00:00Z", "-q"],
        ["--home=/h", "list", "-q", "--system-time=2020-01-01T00:00:00Z"],
        ["-q", "inspect", "audit", "--home", "/h", "--system-time", "2020-01-01T00:00:00Z"],
        ["inspect", "--home", "/h", "audit", "--system-time", "2020-01-01T00:00:00Z", "--quiet"],
    ],
)
def test_options_of_every_command_may_stand_before_and_behind_it(words: list[str]) -> None:
    context = CommandContext.from_arguments(parse(*words))
    assert (context.home, str(context.system_time), context.console.quiet) == (
        Path("/h"),
        "2020-01-01T00:00:00Z",
        True,
    )


def test_home_comes_from_the_environment_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_HOME", "/from-environment")
    assert parse("list").home == "/from-environment"
    assert parse("list", "--home", "/named").home == "/named"
    assert parse("--home", "/named", "list").home == "/named"
    monkeypatch.setenv("ODF_NODE_HOME", "")
    assert parse("list").home is None


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["list"], ("list", None)),
        (["--home", "list", "log"], ("log", None)),
        (["-q", "--system-time", "x", "sql", "-c", "y"], ("sql", None)),
        (["--home=/x", "log"], ("log", None)),
        (["--hom", "/x", "list"], (None, "--hom")),
        (["--version"], (None, None)),
        (["--home"], (None, None)),
        ([], (None, None)),
    ],
)
def test_command_is_found_among_the_options(words: list[str], found: tuple[str | None, str | None]) -> None:
    assert find_command(words) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lsit"], "odf-node: there is no command 'lsit'. Did you mean 'list'?"),
        (["zzzz"], "odf-node: there is no command 'zzzz'."),
        (["--hme", "/x", "list"], "odf-node: there is no option '--hme'. Did you mean '--home'?"),
        (["pull", "--polcy=x", "a"], "odf-node pull: there is no option '--polcy'. Did you mean '--policy'?"),
        (["inspect", "trust", "--jso", "x"], "odf-node inspect trust: there is no option '--jso'."),
        (["token", "lst"], "odf-node token: argument ACTION: invalid choice: 'lst'"),
        (["inspect", "--json", "node"], "odf-node inspect node: '--json' stands behind 'odf-node inspect node'"),
        (["list", "--qiet"], "odf-node list: there is no option '--qiet'. Did you mean '--quiet'?"),
        (["sql", "--scrip", "f"], "odf-node sql: there is no option '--scrip'. Did you mean '--script'?"),
        (["tail", "a", "b"], "odf-node tail: 'b' is one word too many"),
        (["token"], "odf-node token: say which ACTION: create, list, revoke"),
    ],
)
def test_unknown_word_is_named_with_the_nearest_known_one(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    first, second = failure(capsys, *words)
    assert first.startswith(message)
    assert second.startswith("Try 'odf-node")


def test_question_without_its_option_is_answered_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT 1", "--engine", "spark"]) == 2
    assert "odf-node sql -c 'SELECT 1'" in capsys.readouterr().err


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean '--wide'?" in failure(capsys, "list", "--wid")[0]


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_whole_number_out_of_bounds_is_rejected_with_the_bounds(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"of 1 or more, found '{text}'"):
        whole_number(1)(text)


def test_whole_number_within_bounds_is_taken() -> None:
    assert whole_number(0, 65_535)("65535") == 65_535
    with pytest.raises(argparse.ArgumentTypeError, match="from 0 to 65535"):
        whole_number(0, 65_535)("65536")


def test_word_like_nothing_known_gets_no_suggestion() -> None:
    assert suggest("qqqq", ["list", "log"]) == ""


def test_date_alone_means_its_first_moment() -> None:
    assert str(parse_time("2020-10-01", option="--as-of")) == "2020-10-01T00:00:00Z"
    with pytest.raises(UsageError, match=r"--as-of '2020-13-01' is not a time; write it as 2020-10-01T12:00:00Z"):
        parse_time("2020-13-01", option="--as-of")


def iter_parsers(parser: argparse.ArgumentParser) -> "list[argparse.ArgumentParser]":
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found += iter_parsers(child)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_action_has_an_example_and_each_is_one_that_is_taken(name: str) -> None:
    command = registry.find_command(name)
    assert command is not None
    assert command.topic in registry.TOPICS
    for parser in iter_parsers(build_parser(name))[1:]:
        assert isinstance(parser, CommandParser)
        assert parser.examples, parser.prog
        assert f"\n  odf-node {parser.examples[0]}\n" in parser.format_help()
    for line in command.examples:
        # What a shell takes for itself is none of ours.
        written = re.split(" [<>] ", line)[0]
        assert written.split()[0] == name
        assert parse(*shlex.split(written)).command == name, line


def test_help_of_a_command_names_the_options_of_all_and_explains_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "status"], ["quarantine", "show", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        shown = capsys.readouterr().out
        assert shown.endswith("--home, --system-time, -q, -v, --log-file: see 'odf-node --help'.\n")
        assert "this node's folder" not in shown
        assert "FOLDER" not in shown
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "this node's folder" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_explains_every_argument_and_can_be_printed(command: str) -> None:
    for parser in iter_parsers(build_parser(command)):
        if not f"{parser.prog} ".startswith(f"odf-node {command} "):
            continue
        assert isinstance(parser, CommandParser)
        assert "--home" in parser.format_help()
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (parser.prog, action.dest)


def test_help_shows_each_command_once_under_its_topic(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    found: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if heading := re.fullmatch(r"([a-z].*):", line):
            topic = heading[1]
        elif command := re.match(r"  ([a-z]+)  ", line):
            found.setdefault(topic, []).append(command[1])
    expected = {topic: [each.name for each in commands] for topic, commands in registry.list_commands().items()}
    assert found == expected
    assert sorted(name for names in found.values() for name in names) == list(COMMANDS)


@pytest.mark.parametrize("words", [["--help"], ["-h", "list"], ["--quiet", "--help", "pull"]])
def test_help_before_a_command_names_all(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert set(re.findall(r"^  ([a-z]+) ", capsys.readouterr().out, re.MULTILINE)) >= set(COMMANDS)


def test_no_command_shows_the_help_and_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ingest", "a", "--source-name", "nd", "f"], {"dataset": "a", "source_name": "nd", "files": [Path("f")]}),
        (["ingest", "--source-name", "nd", "a", "f", "g"], {"dataset": "a", "files": [Path("f"), Path("g")]}),
        (["delete", "a", "-y", "b"], {"datasets": ["a", "b"], "yes": True}),
        (["list", "a", "-w", "b", "-o", "json", "c"], {"patterns": ["a", "b", "c"], "output_format": "json"}),
        (["inspect", "-q", "schema", "audit"], {"kind": "schema", "subject": "audit", "quiet": True}),
        (["inspect", "schema", "-o", "json", "a"], {"kind": "schema", "subject": "a", "output_format": "json"}),
        (
            ["token", "create", "--read-all", "me", "--expires", "T"],
            {"action": "create", "label": "me", "expires": "T"},
        ),
        (["repo", "-q", "alias", "add", "a", "--push", "u"], {"alias_action": "add", "dataset": "a", "push": True}),
        (["list", "--", "-w", "--x"], {"patterns": ["-w", "--x"], "wide": False}),
        (["list", "a", "--", "-w"], {"patterns": ["a", "-w"], "wide": False}),
    ],
)
def test_options_may_stand_between_words(words: list[str], expected: dict[str, object]) -> None:
    arguments = vars(parse(*words))
    assert {name: arguments[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "stated"),
    [
        (["delete", "-y"], "the following arguments are required: DATASET"),
        (["ingest", "a", "--nope", "b"], "there is no option '--nope'"),
        (["tail", "-n", "1", "a", "b"], "'b' is one word too many"),
        (["inspect", "--json"], "say which WHAT: schema"),
        (["pull", "a", "--limit-rate"], "expected one argument"),
    ],
)
def test_options_between_words_hide_no_mistake(
    capsys: pytest.CaptureFixture[str], words: list[str], stated: str
) -> None:
    assert stated in failure(capsys, *words)[0]


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help", "sql"], "usage: odf-node sql "),
        (["help", "token", "create"], "usage: odf-node token create "),
        (["-q", "help", "ls"], "usage: odf-node list "),
        (["help"], "usage: odf-node [OPTION ...]"),
        (["rm", "--help"], "usage: odf-node delete "),
        (["--home", "rm", "rm", "--help"], "usage: odf-node delete "),
        (["--home", "help", "help", "help"], "usage: odf-node [OPTION ...]"),
    ],
)
def test_help_and_usual_names_of_commands(capsys: pytest.CaptureFixture[str], words: list[str], usage: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(usage)


def test_no_other_name_is_that_of_a_command() -> None:
    commands = [each for commands in registry.list_commands().values() for each in commands]
    aliases = [alias for each in commands for alias in each.aliases]
    assert sorted(aliases) == ["ls", "mv", "rm"]
    assert set(aliases).isdisjoint({*COMMANDS, "help"})
