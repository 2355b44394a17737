"""What a manifest shows to be impossible is rejected by ``add``, with its place (ING-18)."""

import sys
from pathlib import Path

import pytest

from odf_engines.registry import get_ingest_engine
from odf_node.ingest.manifest_check import ManifestCheck
from odf_node.ports.sources import Commands
from odf_node.sources import LocalSourceReader
from odf_protocol.manifest import ManifestError, parse_snapshots
from support.command_line import list_kept, run_command

MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: a
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      prepare: {prepare}
      read: {read}
      preprocess: {preprocess}
      merge: {merge}
"""
USUAL = {
    "fetch": "{kind: Url, url: 'https://example.org/a.csv'}",
    "prepare": "[]",
    "read": "{kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, city STRING, people BIGINT]}",
    "preprocess": "null",
    "merge": "{kind: Snapshot, primaryKey: [city], compareColumns: [people]}",
}
TABLE = "d?table=t&by=c"
QUERY = "query: SELECT 1 AS x FROM input"


def check(commands: Commands = Commands.NONE, **parts: str) -> None:
    text = MANIFEST.format(**{**USUAL, **parts})
    checks = ManifestCheck(LocalSourceReader(commands=commands), get_ingest_engine("arrow"), lambda _name: None)
    parse_snapshots(text, source_name="a.yaml", check=checks.check)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"fetch": "{kind: Url, url: 'postgresql://u:${{ env.P }}@${{ env.H }}/d?table=t&by=c&sslmode=verify-full'}"},
        {"fetch": "{kind: Url, url: 'postgres://u@h/d?query=SELECT+1+AS+c&by=c&limit=${{ env.N || 5 }}'}"},
        {"fetch": "{kind: Url, url: 'ftp://u:${{ env.P }}@h:2121/a/b.csv'}"},
        {"fetch": "{kind: Mqtt, host: h, port: 1883, username: u, password: '${{ env.P }}', topics: [{path: a/+/#}]}"},
        {"fetch": "{kind: Url, url: 's3://b/a/x.csv'}"},
        {"fetch": "{kind: Url, url: 's3+https://${{ env.K }}:${{ env.S }}@${{ env.H }}/b/a.csv'}"},
        {"fetch": "{kind: FilesGlob, path: 's3+http://h:9000/b/${{ env.YEAR }}/[a-z]*-?.csv'}"},
        {"fetch": "{kind: FilesGlob, path: /data/*.csv}"},
        {"fetch": "{kind: FilesGlob, path: '${{ env.DATA }}/*.csv'}"},
        {"fetch": "{kind: Url, url: '${{ env.SOURCE }}'}"},
        {"fetch": "{kind: Url, url: 'https://u:${{ env.P }}@h/a?mail=a:b@c'}"},
        {"fetch": "{kind: Url, url: 'https://h?mail=a:b@c'}"},
        {"fetch": "{kind: Url, url: 'file:///data/${{ env.YEAR || 2024 }}.csv'}"},
        {"read": "{kind: Csv, encoding: UTF-8, dateFormat: rfc3339, ddlSchema: [city STRING, people BIGINT]}"},
        {"read": "{kind: Csv, encoding: Latin1, ddlSchema: [city STRING, people BIGINT]}"},
        {"read": "{kind: NdJson, encoding: UTF-16LE, ddlSchema: [city STRING, people BIGINT]}"},
        {"read": "{kind: NdJson, dateFormat: '%d/%m/%Y', ddlSchema: [city STRING, people BIGINT]}"},
        {"preprocess": f"{{kind: Sql, engine: Spark, {QUERY}}}", "merge": "{kind: Ledger, primaryKey: [made_by_it]}"},
        {"merge": "{kind: Ledger, primaryKey: [event_time]}", "read": "{kind: Csv, ddlSchema: [n BIGINT]}"},
        {"merge": "{kind: ChangelogStream, primaryKey: [n]}", "read": "{kind: Csv, ddlSchema: [op INT, n BIGINT]}"},
    ],
)
def test_manifest_that_can_be_pulled_passes(parts: dict[str, str]) -> None:
    check(**parts)


WRONG = {
    "container": (
        {"fetch": "{kind: Container, image: 'x/y'}"},
        "a.yaml:8:21: content.metadata[0].fetch.kind: expected no program, as none may be run here (the setting",
    ),
    "mqtt-topics": ({"fetch": "{kind: Mqtt, host: h, port: 1, topics: []}"}, "fetch.topics: expected a topic"),
    "mqtt-topic": ({"fetch": "{kind: Mqtt, host: h, port: 1, topics: [{path: ''}]}"}, "topics[0].path: expected a"),
    "mqtt-port": ({"fetch": "{kind: Mqtt, host: h, port: 0, topics: [{path: t}]}"}, "expected a host and a port"),
    "mqtt-password": (
        {"fetch": "{kind: Mqtt, host: h, port: 1, username: u, password: pw, topics: [{path: t}]}"},
        "fetch.password: expected a password from the environment",
    ),
    "ethereum": (
        {"fetch": "{kind: EthereumLogs, chainId: 1}"},
        "fetch.kind: expected Url, FilesGlob, Container or Mqtt (EthereumLogs is not taken, as it asks a node of",
    ),
    "ftps": ({"fetch": "{kind: Url, url: 'ftps://u:pw@x/a'}"}, "found ftps://x/a"),
    "ftp-folder": ({"fetch": "{kind: Url, url: 'ftp://x/a/'}"}, "found no host, no file"),
    "ftp-password": ({"fetch": "{kind: Url, url: 'ftp://u:pw@x/a'}"}, "found one that is written out"),
    "password": ({"fetch": f"{{kind: Url, url: 'postgresql://u:pw@h/{TABLE}'}}"}, "found one that is written out"),
    "web-password": ({"fetch": "{kind: Url, url: 'https://u:pw@x/a'}"}, "fetch.url: expected a password from the env"),
    "web-password-default": (
        {"fetch": "{kind: Url, url: \"http://u:${{ env.P || 'pw' }}@h/d\"}"},
        "found one that is written out",
    ),
    "password-default": (
        {"fetch": "{kind: Url, url: \"postgresql://u:${{ env.P || 'pw' }}@h/d?table=t&by=c\"}"},
        "found one that is written out",
    ),
    "bucket-secret": ({"fetch": "{kind: Url, url: 's3://k:s@b/a'}"}, "found one that is written out"),
    "bucket-pattern-secret": ({"fetch": "{kind: FilesGlob, path: 's3://k:s@b/*'}"}, "found one that is written out"),
    "bucket-object": ({"fetch": "{kind: Url, url: 's3://b/a/'}"}, "found no object, a folder, or a key with empty"),
    "bucket-query": ({"fetch": "{kind: Url, url: 's3://b/a?x=1'}"}, "found a query or a fragment"),
    "bucket-name": ({"fetch": "{kind: FilesGlob, path: 's3://b*/a'}"}, "found no server, or a bucket that is no"),
    "bucket-order": ({"fetch": "{kind: FilesGlob, path: 's3://b/a', order: ByEventTime}"}, "fetch.order: expected By"),
    "table": ({"fetch": "{kind: Url, url: 'postgresql://u@h/d?table=t'}"}, "found no by, or not one of"),
    "table-option": ({"fetch": f"{{kind: Url, url: 'postgresql://u@h/{TABLE}&passfile=/x'}}"}, "passfile"),
    "table-ssl": ({"fetch": f"{{kind: Url, url: 'postgresql://u@h/{TABLE}&sslmode=on'}}"}, "found sslmode=on"),
    "table-hosts": ({"fetch": f"{{kind: Url, url: 'postgresql://u@h,i/{TABLE}'}}"}, "found no host, or several"),
    "no-scheme": ({"fetch": "{kind: Url, url: 'data/a.csv'}"}, "found data/a.csv"),
    "relative-file": ({"fetch": "{kind: Url, url: 'file:a.csv'}"}, "expected file:///absolute/path"),
    "relative-glob": ({"fetch": "{kind: FilesGlob, path: 'data/*.csv'}"}, "fetch.path: expected an absolute path"),
    "glob-order": ({"fetch": "{kind: FilesGlob, path: /a, order: ByEventTime}"}, "fetch.order: expected ByName"),
    "glob-time": (
        {"fetch": "{kind: FilesGlob, path: /a, eventTime: {kind: FromPath, pattern: 'no group'}}"},
        "fetch.eventTime: expected a regular expression (RE2) with a group",
    ),
    "glob-regex": ({"fetch": "{kind: FilesGlob, path: /a, eventTime: {kind: FromPath, pattern: '('}}"}, "eventTime"),
    "url-time": (
        {"fetch": "{kind: Url, url: 'http://x/', eventTime: {kind: FromPath, pattern: '(.)'}}"},
        "expected FromMetadata or FromSystemTime",
    ),
    "pipe": (
        {"prepare": "[{kind: Pipe, command: [sort]}]"},
        "prepare[0].kind: expected no command, as none may be run here (the setting ingest.commands = 'sandboxed'",
    ),
    "encoding": ({"read": "{kind: Csv, encoding: utf-7}"}, "expected an encoding that is read here (utf8, iso"),
    "json-encoding": ({"read": "{kind: NdJson, encoding: utf61}"}, "did you mean 'utf-16'?"),
    "date-format": ({"read": "{kind: Csv, dateFormat: yyyy-MM-dd}"}, "read.dateFormat: expected a pattern"),
    "timestamp-format": ({"read": "{kind: Json, timestampFormat: '%Q'}"}, "read.timestampFormat: expected rfc3339, or"),
    "null-value": ({"read": "{kind: Csv, nullValue: NA}"}, "read.nullValue: expected the empty text"),
    "separator": ({"read": "{kind: Csv, separator: '||'}"}, "read.separator: expected one ASCII character"),
    "type": (
        {"read": "{kind: Csv, schema: {fields: [{name: city, type: String}, {name: b, type: Binary}]}}"},
        "read.schema.fields[1].type: expected a type that text can denote for the column b",
    ),
    "hash": (
        {"read": "{kind: NdJson, schema: {fields: [{name: city, type: String}, {name: b, type: {kind: List, itemType: "
                 "{kind: Struct, fields: [{name: k, type: String}]}}}]}}"},
        "read.schema.fields[1].type: expected a type that ODF's logical hash has for the column b; String keeps the",
    ),
    "key": (
        {"merge": "{kind: Snapshot, primaryKey: [event_time, citty]}"},
        "expected a column of the source (event_time, city, people), found citty; did you mean 'city'?",
    ),
    "compared": ({"merge": "{kind: Snapshot, primaryKey: [city], compareColumns: [x]}"}, "merge.compareColumns[0]"),
    "no-op": ({"merge": "{kind: ChangelogStream, primaryKey: [city]}"}, "a changelog needs the column op"),
    "event-time": (
        {"read": "{kind: Csv, schema: {fields: [{name: event_time, type: String}, {name: city, type: String}]}}",
         "merge": "{kind: Append}"},
        "column event_time: expected a date or a timestamp",
    ),
    "engine": (
        {"preprocess": f"{{kind: Sql, engine: sprak, {QUERY}}}"},
        "an engine that is here (datafusion, spark), and a query in its dialect, found sprak; did you mean 'spark'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "stated"), WRONG.values(), ids=WRONG.keys())
def test_manifest_that_could_never_be_pulled_is_rejected_with_its_place(parts: dict[str, str], stated: str) -> None:
    with pytest.raises(ManifestError) as caught:
        check(**parts)
    assert stated in str(caught.value)
    assert str(caught.value).startswith("a.yaml:")


def test_source_whose_extra_is_missing_is_rejected_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ManifestError, match=r"expected the extra postgresql .*pip install 'odf-node\[postgresql\]'"):
        check(fetch=f"{{kind: Url, url: 'postgresql://u@h/{TABLE}'}}")


@pytest.mark.parametrize("commands", [Commands.SANDBOXED, Commands.UNCONFINED])
def test_pipe_passes_where_the_operator_allows_commands(commands: Commands) -> None:
    check(commands, prepare="[{kind: Pipe, command: [sort]}]")


def test_add_rejects_it_makes_nothing_and_takes_it_once_the_setting_allows(tmp_path: Path) -> None:
    home, manifest = tmp_path / "home", tmp_path / "a.yaml"
    manifest.write_text(MANIFEST.format(**{**USUAL, "prepare": "[{kind: Pipe, command: [sort]}]"}))
    ran = run_command(home, "add", manifest)
    assert ran.returncode == 7
    assert "a.yaml:9:24: content.metadata[0].prepare[0].kind: expected no command" in ran.stderr
    assert "ingest.commands" in ran.stderr
    assert list_kept(home)["datasets"] == ()
    allowed = {"ODF_NODE_INGEST_COMMANDS": "sandboxed"}
    assert run_command(home, "add", manifest, environment=allowed).returncode == 0
    assert run_command(home, "add", manifest, environment={"ODF_NODE_INGEST_COMMANDS": "all"}).returncode != 0
