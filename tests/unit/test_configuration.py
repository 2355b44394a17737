"""Settings: read from a file and the environment, every mistake with its place (DAEMON-1 to DAEMON-5)."""

import json
import re
from pathlib import Path

import pytest

from odf_node.configuration import (
    Configuration,
    ConfigurationError,
    find_configuration_file,
    load_configuration,
    parse_configuration,
)
from odf_node.configuration.declaration import (
    LISTS,
    SECTIONS,
    HostSettings,
    Schedule,
    rule_of,
    settings_of,
    type_of,
)
from odf_node.configuration.json_schema import make_json_schema
from odf_node.daemon.reloading import plan_reload

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "spec/daemon.md").read_text()


def parse(text: str, **environment: str) -> Configuration:
    return parse_configuration(text, source_name="node.toml", environment=environment)


def error_of(text: str, **environment: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, **environment)
    return str(caught.value)


def test_nothing_said_gives_the_defaults() -> None:
    assert parse("") == Configuration()


def test_settings_are_read_by_section() -> None:
    read = parse('[listen]\naddress = "::"\nport = 0\n[tls]\ncertificate = "/c.pem"\nkey = "/k.pem"\n')
    assert (read.listen.address, read.listen.port) == ("::", 0)
    assert read.tls.certificate == Path("/c.pem")


def test_environment_wins_over_the_file() -> None:
    read = parse(
        "[listen]\nport = 1\n[access]\nanonymous = true\n",
        ODF_NODE_LISTEN_PORT="2",
        ODF_NODE_ACCESS_ANONYMOUS="no",
        ODF_NODE_HOME="/elsewhere",
        ODF_NODE_ENGINE_IDLE_S="5",
        LISTEN_PORT="3",
    )
    assert (read.listen.port, read.access.anonymous) == (2, False)


def test_schedules_are_read_in_their_order() -> None:
    """SCHED-1."""
    read = parse('[[schedule]]\ndatasets = "a b.%"\nevery = "15m"\n[[schedule]]\ndatasets = "%"\ncron = "0 4 * * *"\n')
    assert read.schedule == (Schedule(datasets="a b.%", every="15m"), Schedule(datasets="%", cron="0 4 * * *"))


def test_pauses_of_sources_are_read_in_their_order() -> None:
    """SCHED-12."""
    read = parse('[[source]]\nat = "a.example mqtt:"\npause = "30s"\n[[source]]\nat = "%"\npause = "1s"\n')
    assert read.source == (HostSettings(at="a.example mqtt:", pause="30s"), HostSettings(at="%", pause="1s"))


def test_schedules_change_while_the_node_runs() -> None:
    running, wanted = parse(""), parse('[[schedule]]\ndatasets = "a"\nevery = "1m"\n')
    plan = plan_reload(running, wanted)
    assert (plan.changed, plan.need_restart, plan.configuration) == (("schedule",), (), wanted)
    assert plan_reload(wanted, running).configuration == running


def test_role_that_may_be_given_to_no_engine_may_be_empty() -> None:
    assert parse("[engines]\ningest_first = ''\n").engines.ingest_first == ""


def test_settings_that_have_no_meaning_any_more_are_told_and_change_nothing_query_7() -> None:
    read = parse("[engines]\nquery = 'spark'\ningest = 'arrow'\n", ODF_NODE_ENGINES_QUERY_FIRST="")
    assert read.engines.ingest == "arrow"
    first, second = read.retired
    assert first.startswith("node.toml:2: engines.query has no effect any more: ")
    assert second.startswith("ODF_NODE_ENGINES_QUERY_FIRST: engines.query_first has no effect any more: ")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "[listen]\n\nport = 99999\n",
            "node.toml:3: listen.port: expected a whole number from 0 to 65535, found 99999",
        ),
        ("[listen]\nport = true\n", "node.toml:2: listen.port: expected a whole number"),
        ('[listen]\nport = "80"\n', "found '80'"),
        ("[listen]\nport = 80.0\n", "found 80.0"),
        ('[access]\nanonymous = "yes"\n', "node.toml:2: access.anonymous: expected true or false, found 'yes'"),
        ("[tls]\nkey = 7\n", "node.toml:2: tls.key: expected the name of a file, found 7"),
        ("[listen]\naddress = ''\n", "node.toml:2: listen.address: expected a text, found ''"),
        ("# a comment\n[listen]\nprot = 80\n", "node.toml:3: listen.prot: unknown setting. Did you mean 'port'?"),
        ("[lisen]\nport = 80\n", "node.toml:1: lisen: unknown section. Did you mean 'listen'?"),
        ("listen.prot = 80\n", "node.toml:1: listen.prot: unknown setting"),
        ("listen = {prot = 80}\n", "node.toml:1: listen.prot: unknown setting"),
        ("listen = 80\n", "node.toml:1: listen: expected a section, as [listen]"),
        ("[listen\nport = 80\n", "node.toml: no TOML: "),
        ("[listen]\nport = 80\nport = 81\n", "line 3"),
        ('\n[tls]\nkey = "k.pem"\n', "node.toml:2: tls: expected both certificate and key"),
        ('[schedule]\nevery = "1m"\n', "node.toml:1: schedule: expected sections, each as [[schedule]]"),
        ("schedule = 7\n", "node.toml:1: schedule: expected sections, each as [[schedule]]"),
        ('[[schedule]]\nevery = "1m"\n', "node.toml:1: schedule.datasets: expected names or % patterns"),
        ('[[schedule]]\ndatasets = " "\nevery = "1m"\n', "node.toml:1: schedule.datasets: expected names"),
        ('[[schedule]]\ndatasets = "a"\n', "node.toml:1: schedule: expected either every or cron"),
        ('[[schedule]]\ndatasets = "a"\nevery = "1m"\ncron = "* * * * *"\n', "schedule: expected either every or cron"),
        (
            '[[schedule]]\ndatasets = "a"\nevery = "1m"\n[[schedule]]\ndatasets = "b"\nevery = "soon"\n',
            "node.toml:6: schedule.every: expected a number with s, m, h or d, from 1s to 366d, such as 15m, found",
        ),
        (
            '[[schedule]]\ndatasets = "a"\ncron = "* * * * * *"\n',
            "node.toml:3: schedule.cron: expected minute, hour, day of month, month and day of week",
        ),
        (
            '[[schedule]]\ndatasets = "a"\ncron = "0 0 * * *"\ntime_zone = "Mars/Base"\n',
            "node.toml:4: schedule.time_zone: expected a zone that this machine knows",
        ),
        ('[[schedule]]\ndataset = "a"\n', "node.toml:2: schedule.dataset: unknown setting. Did you mean 'datasets'?"),
        (
            '[[schedule]]\ndatasets = "a"\nevery = "1m"\npause = "0s"\n',
            "node.toml:4: schedule.pause: expected a number",
        ),
        ('[[source]]\npause = "1m"\n', "node.toml:1: source.at: expected hosts, % patterns or schemes"),
        ('[[source]]\nat = "a.example"\n', "node.toml:1: source.pause: expected a number with s, m, h or d"),
        ('[[source]]\nat = "a.example"\npause = "-1s"\n', "node.toml:3: source.pause: expected a number"),
        ('[[schedul]]\ndatasets = "a"\n', "node.toml:1: schedul: unknown section. Did you mean 'schedule'?"),
        ('[[schedule]]\ndatasets = ["a"]\n', "node.toml:2: schedule.datasets: expected a text"),
        (
            '[[schedule]]\ndatasets = "a"\nevery = "1s"\n' * 101,
            "node.toml:1: schedule: expected at most 100, found 101",
        ),
    ],
)
def test_mistake_is_told_with_its_place(text: str, reported: str) -> None:
    assert reported in error_of(text)


@pytest.mark.parametrize(
    ("variable", "value", "reported"),
    [
        ("ODF_NODE_LISTEN_PORT", "x", "ODF_NODE_LISTEN_PORT: listen.port: expected a whole number"),
        ("ODF_NODE_LISTEN_PORT", "-1", "found '-1'"),
        ("ODF_NODE_ACCESS_ANONYMOUS", "maybe", "expected true or false, found 'maybe'"),
        ("ODF_NODE_LISTEN_PROT", "1", "ODF_NODE_LISTEN_PROT: listen.prot: unknown setting. Did you mean 'port'?"),
    ],
)
def test_mistake_in_the_environment_names_the_variable(variable: str, value: str, reported: str) -> None:
    assert reported in error_of("", **{variable: value})


def test_file_is_the_named_one_or_the_variables_or_the_homes(tmp_path: Path) -> None:
    named, variable = tmp_path / "a.toml", {"ODF_NODE_CONFIG": "/b.toml"}
    assert find_configuration_file(named, variable, tmp_path) == named
    assert find_configuration_file(None, variable, tmp_path) == Path("/b.toml")
    assert find_configuration_file(None, {}, tmp_path) is None
    (tmp_path / "odf-node.toml").touch()
    assert find_configuration_file(None, {}, tmp_path) == tmp_path / "odf-node.toml"


@pytest.mark.parametrize(
    ("content", "reported"),
    [(None, "cannot be read: No such file"), (b"\xff", "expected UTF-8"), (b"#" * 2_000_000, "at most 1048576 bytes")],
    ids=["absent", "other-text", "endless"],
)
def test_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None, reported: str) -> None:
    path = tmp_path / "node.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reported):
        load_configuration(path, {})


def test_reload_takes_what_can_change_and_names_the_rest() -> None:
    running = parse('[tls]\ncertificate = "a"\nkey = "b"\n')
    wanted = parse('[listen]\nport = 1\n[limits]\nrequests = 7\n[tls]\ncertificate = "c"\nkey = "d"\n')
    plan = plan_reload(running, wanted)
    assert plan.changed == ("tls.certificate", "tls.key", "limits.requests")
    assert plan.need_restart == ("listen.port",)
    assert plan.configuration.limits.requests == 7
    assert plan.configuration.listen.port == running.listen.port


def test_encryption_is_not_switched_on_or_off_while_running() -> None:
    plain, encrypted = parse(""), parse('[tls]\ncertificate = "a"\nkey = "b"\n')
    for before, after in ((plain, encrypted), (encrypted, plain)):
        plan = plan_reload(before, after)
        assert plan.need_restart == ("tls.certificate", "tls.key")
        assert plan.configuration == before


def test_schema_and_table_of_the_specification_are_those_of_the_declaration() -> None:
    assert json.loads((ROOT / "spec/schemas/configuration.schema.json").read_text()) == make_json_schema()
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| (\w+) \| (\S+) \| (yes|no) \| (.*) \|$", SPEC, flags=re.MULTILINE)
    declared = [
        (
            section,
            name,
            type_of(setting),
            "none" if setting.default is None else str(setting.default).lower(),
            "yes" if rule_of(setting).reloads else "no",
            rule_of(setting).meaning,
        )
        for section in (*SECTIONS, *LISTS)
        for name, setting in settings_of(section).items()
    ]
    assert rows == declared


def test_example_can_be_used() -> None:
    example = ROOT / "examples/daemon/odf-node.toml"
    assert load_configuration(example, {}).observe.port == 9090
    # What is commented out can be used as well.
    text = (
        example.read_text().replace("# [tls]", "[tls]").replace("# certificate", "certificate").replace("# key", "key")
    )
    assert parse(text).tls.key == Path("/etc/odf-node/key.pem")
