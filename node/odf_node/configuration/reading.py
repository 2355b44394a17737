"""From a file and the environment to a configuration; every mistake with its place (DAEMON-1 to DAEMON-4)."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any, Final

from odf_engines.cluster import LOCAL_MASTER
from odf_engines.registry import find_cluster_engine
from odf_node.configuration.declaration import (
    LISTS,
    MAX_LISTED,
    SECTIONS,
    Configuration,
    Engines,
    HostSettings,
    Notice,
    Schedule,
    rule_of,
    settings_of,
    type_of,
)
from odf_node.configuration.schedule_times import parse_cron, parse_every, parse_zone
from odf_node.errors import UsageError
from odf_node.ports.notices import find_address_problem

CONFIGURATION_VARIABLE: Final = "ODF_NODE_CONFIG"
RETIRED: Final = {
    "engines.query": "queries that name no engine are DataFusion's, in its own SQL; --engine names another one",
    "engines.query_first": "the engine that a query names answers alone, and DataFusion where it names none",
}
"""Settings of earlier versions: files that have them are read, and it is said what holds instead (DAEMON-2)."""
MAX_FILE_BYTES: Final = 1024 * 1024  # guess: a hundred times what anybody writes

_PREFIX: Final = "ODF_NODE_"
_TABLE: Final = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")
_LISTED: Final = re.compile(r"\s*\[\[\s*([\w.\"'-]+)\s*\]\]")
_KEY: Final = re.compile(r"\s*([\w.\"'-]+)\s*=")
_TRUTH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class ConfigurationError(UsageError):
    """A setting cannot be used.

    Attributes:
        place: ``FILE:LINE`` or the variable.
        setting: ``section.name``, empty where no single one is meant.
    """

    def __init__(self, place: str, setting: str, text: str) -> None:
        super().__init__(": ".join(part for part in (place, setting, text) if part))
        self.place = place
        self.setting = setting


def find_configuration_file(named: Path | None, environment: Mapping[str, str], home: Path) -> Path | None:
    """Give the file to read: the one named, else ``$ODF_NODE_CONFIG``, else ``odf-node.toml`` in the home, if any.

    A file that was named must exist; that is found out when it is read.
    """
    if named is not None:
        return named
    if text := environment.get(CONFIGURATION_VARIABLE):
        return Path(text).expanduser()
    standing = home / "odf-node.toml"
    return standing if standing.is_file() else None


def load_configuration(path: Path | None, environment: Mapping[str, str]) -> Configuration:
    """Read the file (None: there is none) and what the environment says instead of it.

    Raises:
        ConfigurationError: The file cannot be read, or a setting cannot be used.
    """
    text = ""
    if path is not None:
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
            text = raw.decode("utf-8")
        except OSError as error:
            raise ConfigurationError(str(path), "", f"cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(str(path), "", "expected UTF-8") from error
        if len(raw) > MAX_FILE_BYTES:
            raise ConfigurationError(str(path), "", f"expected at most {MAX_FILE_BYTES} bytes")
    return parse_configuration(text, source_name=str(path), environment=environment)


def parse_configuration(text: str, *, source_name: str, environment: Mapping[str, str]) -> Configuration:
    """Read the text of a file; variables of the environment win over it.

    Relative paths are taken from the working folder.

    Raises:
        ConfigurationError: A setting is unknown, or its value cannot be used.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(source_name, "", f"no TOML: {error}") from error
    lines = _Lines(text, source_name)
    retired: list[str] = []
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    schedules = _read_schedules(tables.pop("schedule", []), lines)
    sources = _read_sources(tables.pop("source", []), lines)
    notices = _read_notices(tables.pop("notice", []), lines)
    for section, table in tables.items():
        if section not in SECTIONS:
            known_words = (*SECTIONS, *LISTS)
            raise ConfigurationError(lines.place(section), section, f"unknown section.{_suggest(section, known_words)}")
        if not isinstance(table, dict):
            raise ConfigurationError(lines.place(section), section, "expected a section, as [" + section + "]")
        for name in [each for each in table if f"{section}.{each}" in RETIRED]:
            retired.append(_report_retired(lines.place(f"{section}.{name}"), f"{section}.{name}"))
            del table[name]
        values[section] = _read_section(section, table, lines, section)
    _read_environment(environment, values, retired)
    sections: dict[str, Any] = {section: kind(**values[section]) for section, kind in SECTIONS.items()}
    configuration = Configuration(
        **sections, schedule=schedules, source=sources, notice=notices, retired=tuple(retired)
    )
    if (configuration.tls.certificate is None) != (configuration.tls.key is None):
        raise ConfigurationError(lines.place("tls"), "tls", "expected both certificate and key, or none of them")
    heads = configuration.heads
    if heads.valid_hours <= heads.renew_hours:
        place, expected = lines.place("heads"), f"more than heads.renew_hours ({heads.renew_hours})"
        raise ConfigurationError(place, "heads.valid_hours", f"expected {expected}, found {heads.valid_hours}")
    _check_cluster(configuration.engines, lines)
    for setting, url in (
        ("telemetry.endpoint", configuration.telemetry.endpoint),
        ("lineage.url", configuration.lineage.url),
    ):
        if url is not None and (problem := find_address_problem(url)) is not None:
            raise ConfigurationError(lines.place(setting), setting, problem)
    return configuration


def _check_cluster(engines: Engines, lines: "_Lines") -> None:
    """Look at the settings that a cluster needs (CLUSTER-1)."""
    if engines.spark_master == LOCAL_MASTER:
        return
    engine = find_cluster_engine()  # without one, a step that needs the cluster says what brings it
    try:
        if engine is not None:
            engine.check_master(engines.spark_master)
    except ValueError as error:
        place = lines.place("engines.spark_master")
        raise ConfigurationError(place, "engines.spark_master", str(error)) from error
    if engines.spark_executor_cores > engines.spark_cores:
        place, expected = lines.place("engines.spark_executor_cores"), f"at most spark_cores ({engines.spark_cores})"
        text = f"expected {expected}, found {engines.spark_executor_cores}"
        raise ConfigurationError(place, "engines.spark_executor_cores", text)
    for name in ("spark_shared_folder", "spark_secret"):
        if getattr(engines, name) is None:
            text = "a cluster needs this setting too; see engines.spark_master"
            raise ConfigurationError(lines.place("engines.spark_master"), f"engines.{name}", text)


def _read_section(section: str, table: Mapping[str, Any], lines: "_Lines", key: str) -> dict[str, Any]:
    known, values = settings_of(section), {}
    for name, value in table.items():
        setting, place = f"{section}.{name}", lines.place(f"{key}.{name}")
        if name not in known:
            raise ConfigurationError(place, setting, f"unknown setting.{_suggest(name, known)}")
        values[name] = _check(known[name], value, place, setting)
    return values


def _read_schedules(tables: object, lines: "_Lines") -> tuple[Schedule, ...]:
    """Read what stands below each ``[[schedule]]`` (SCHED-1 to SCHED-3)."""
    found = []
    for key, values in _read_list("schedule", tables, lines):
        schedule = Schedule(**values)
        if (schedule.every is None) == (schedule.cron is None):
            raise ConfigurationError(lines.place(key), "schedule", "expected either every or cron")
        for setting, check in _SCHEDULE_CHECKS:
            try:
                check(schedule)
            except ValueError as error:
                raise ConfigurationError(lines.place(f"{key}.{setting}"), f"schedule.{setting}", str(error)) from error
        found.append(schedule)
    return tuple(found)


def _read_sources(tables: object, lines: "_Lines") -> tuple[HostSettings, ...]:
    """Read what stands below each ``[[source]]`` (SCHED-12)."""
    found = []
    for key, values in _read_list("source", tables, lines, named="at", what="hosts, % patterns or schemes"):
        source = HostSettings(**values)
        try:
            parse_every(source.pause or "")
        except ValueError as error:
            raise ConfigurationError(lines.place(f"{key}.pause"), "source.pause", str(error)) from error
        found.append(source)
    return tuple(found)


def _read_notices(tables: object, lines: "_Lines") -> tuple[Notice, ...]:
    """Read what stands below each ``[[notice]]`` (NOTICE-1)."""
    found = []
    for key, values in _read_list("notice", tables, lines):
        notice = Notice(**values)
        if (problem := find_address_problem(notice.url)) is not None:
            raise ConfigurationError(lines.place(f"{key}.url"), "notice.url", problem)
        found.append(notice)
    return tuple(dict.fromkeys(found))


def _read_list(
    section: str,
    tables: object,
    lines: "_Lines",
    *,
    named: str = "datasets",
    what: str = "names or % patterns of datasets",
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the key and the values of each section of a list; each names what it holds for."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(lines.place(section), section, f"expected sections, each as [[{section}]]")
    if len(tables) > MAX_LISTED:
        text = f"expected at most {MAX_LISTED}, found {len(tables)}; a % pattern names many"
        raise ConfigurationError(lines.place(section), section, text)
    for number, table in enumerate(tables):
        key = f"{section}#{number}"
        values = _read_section(section, table, lines, key)
        if not (values.get(named) or "").split():
            raise ConfigurationError(lines.place(key), f"{section}.{named}", f"expected {what}, between spaces")
        yield key, values


def _check_zone(schedule: Schedule) -> None:
    parse_zone(schedule.time_zone)


def _check_every(schedule: Schedule) -> None:
    if schedule.every is not None:
        parse_every(schedule.every)


def _check_pause(schedule: Schedule) -> None:
    if schedule.pause is not None:
        parse_every(schedule.pause)


def _check_cron(schedule: Schedule) -> None:
    if schedule.cron is not None:
        parse_cron(schedule.cron, schedule.time_zone)


_SCHEDULE_CHECKS: Final = (
    ("time_zone", _check_zone),
    ("every", _check_every),
    ("cron", _check_cron),
    ("pause", _check_pause),
)


def _report_retired(place: str, setting: str) -> str:
    return f"{place}: {setting} has no effect any more: {RETIRED[setting]}"


def _read_environment(environment: Mapping[str, str], values: dict[str, dict[str, Any]], retired: list[str]) -> None:
    for variable, text in environment.items():
        section, _, name = variable.removeprefix(_PREFIX).lower().partition("_")
        if not variable.startswith(_PREFIX) or section not in SECTIONS:
            continue
        setting, known = f"{section}.{name}", settings_of(section)
        if setting in RETIRED:
            retired.append(_report_retired(variable, setting))
            continue
        if name not in known:
            raise ConfigurationError(variable, setting, f"unknown setting.{_suggest(name, known)}")
        values[section][name] = _check(known[name], _from_text(known[name], text), variable, setting)


def _from_text(declared: "Field[Any]", text: str) -> object:
    match type_of(declared):
        case "integer" if re.fullmatch(r"\d{1,16}", text, re.ASCII):
            return int(text)
        case "boolean":
            return _TRUTH.get(text.lower(), text)
    return text


def _check(declared: "Field[Any]", value: object, place: str, setting: str) -> object:
    rule = rule_of(declared)
    match type_of(declared):
        case "integer":
            if isinstance(value, int) and not isinstance(value, bool) and rule.lowest <= value <= rule.highest:
                return value
            expected = f"a whole number from {rule.lowest} to {rule.highest}"
        case "boolean":
            if isinstance(value, bool):
                return value
            expected = "true or false"
        case "path":
            if isinstance(value, str) and value and "\0" not in value:
                return Path(value).expanduser()
            expected = "the name of a file"
        case _ if rule.choices:
            if value in rule.choices:
                return value
            expected = f"one of {', '.join(rule.choices)}"
        case _:
            if isinstance(value, str) and (value or rule.may_be_empty) and "\0" not in value:
                return value
            expected = "a text"
    raise ConfigurationError(place, setting, f"expected {expected}, found {value!r}")


def _suggest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(known)}"


class _Lines:
    """Where settings stand in a file: the TOML reader does not tell.

    Finds tables and keys at the beginning of lines, as people write them; what is written otherwise (inline tables) is
    placed at its table's line, and what is not found at the file.
    """

    def __init__(self, text: str, source_name: str) -> None:
        self._source_name = source_name
        self._found: dict[str, int] = {}
        table, listed = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            if header := _LISTED.match(line):
                name, table, listed = _bare(header[1]), f"{_bare(header[1])}#{listed}", listed + 1
                self._found.setdefault(name, number)
                self._found.setdefault(table, number)
            elif header := _TABLE.match(line):
                table = _bare(header[1])
                self._found.setdefault(table, number)
            elif key := _KEY.match(line):
                name = ".".join(part for part in (table, _bare(key[1])) if part)
                self._found.setdefault(name, number)
                self._found.setdefault(name.partition(".")[0], number)

    def place(self, setting: str) -> str:
        """Return ``FILE:LINE`` of a setting or section."""
        line = self._found.get(setting, self._found.get(setting.partition(".")[0]))
        return self._source_name if line is None else f"{self._source_name}:{line}"


def _bare(key: str) -> str:
    return key.replace('"', "").replace("'", "")
