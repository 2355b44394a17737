"""Forms of manifests and queries that another implementation may be given, with the small files that they read.

Each is a dataset in one document, the files beside it by name, and what brings its rows: ``pull`` for a polling source
or a derivative, ``ingest`` of the file ``rows`` for a push source. ``FOLDER`` in a text is the folder of the files.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

TIME: Final = "2024-01-01T00:00:00Z"
CSV: Final = b"event_time,id,name\n2024-01-01,1,a\n2024-01-02,2,b\n"
NDJSON: Final = (
    b'{"event_time":"2024-01-01T00:00:00Z","id":1,"name":"a"}\n{"event_time":"2024-01-02T00:00:00Z","id":2}\n'
)
FEATURE: Final = {
    "type": "Feature",
    "properties": {"id": 1, "name": "a"},
    "geometry": {"type": "Point", "coordinates": [1.5, 2]},
}
DDL: Final = "ddlSchema: [event_time TIMESTAMP, id BIGINT, name STRING]"
READ: Final = f"{{kind: Csv, header: true, {DDL}}}"
ND: Final = f"{{kind: NdJson, {DDL}}}"


@dataclass(frozen=True, slots=True)
class ManifestForm:
    """One form."""

    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    brings: str = ""


def document(name: str, metadata: str, *, kind: str = "Root") -> str:
    """Write a snapshot; ``metadata`` has an event in each line."""
    events = "".join(f"    - {event}\n" for event in metadata.strip().splitlines())
    return (
        f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: {kind}\n  metadata:\n{events}"
        if events
        else f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: {kind}\n  metadata: []\n"
    )


def pushed(read: str = READ, rows: bytes = CSV, *, merge: str = "{kind: Append}", more: str = "") -> ManifestForm:
    """A push source that is given a file."""
    source = f"{{kind: AddPushSource, sourceName: default, read: {read}, merge: {merge}}}"
    return ManifestForm(document("NAME", f"{more}\n{source}" if more else source), {"rows": rows}, "ingest")


def polled(
    fetch: str, files: Mapping[str, bytes], *, read: str = READ, prepare: str = "", merge: str = "{kind: Append}"
) -> ManifestForm:
    """A polling source that finds its files."""
    steps = f"prepare: {prepare}, " if prepare else ""
    source = f"{{kind: SetPollingSource, fetch: {fetch}, {steps}read: {read}, merge: {merge}}}"
    return ManifestForm(document("NAME", source), files, "pull")


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Pack files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def parquet(table: pa.Table) -> bytes:
    """Write a file."""
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def _one(url: str) -> str:
    return f"{{kind: Url, url: 'file://FOLDER/{url}'}}"


_TABLE = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", None], "x": pa.array([1.5, None], pa.float64())})
_COLLECTION = json.dumps({"type": "FeatureCollection", "features": [FEATURE, FEATURE]}).encode()
_DOCUMENT = json.dumps({"data": {"rows": [{"id": 1, "name": "a"}, {"id": 2}]}, "n": 2}).encode()
_IDS = "ddlSchema: [id BIGINT, name STRING]"
_TYPES = "ddlSchema: [{types}]"
_ODF = (
    "schema: {fields: [{name: id, type: {kind: Option, inner: Int64}}, "
    "{name: name, type: {kind: Option, inner: String}}]}"
)
_KEY = "primaryKey: [id]"
_SCALARS = "a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g BOOLEAN, h DATE, i STRING"

READERS: Final[Mapping[str, ManifestForm]] = {
    "csv": pushed(),
    "csv-without-schema": pushed("{kind: Csv, header: true}"),
    "csv-without-header": pushed("{kind: Csv}", b"1,a\n2,b\n"),
    "csv-without-header-with-ddl": pushed(f"{{kind: Csv, {_IDS}}}", b"1,a\n2,b\n"),
    "csv-inferred": pushed("{kind: Csv, header: true, inferSchema: true}", b"id,name\n1,a\n2,b\n"),
    "csv-separator": pushed(f"{{kind: Csv, header: true, separator: ';', {_IDS}}}", b"id;name\n1;a,b\n"),
    "csv-tab": pushed(f'{{kind: Csv, header: true, separator: "\\t", {_IDS}}}', b"id\tname\n1\ta\n"),
    "csv-quote": pushed(f'{{kind: Csv, header: true, quote: "\'", {_IDS}}}', b"id,name\n1,'a,b'\n"),
    "csv-escape": pushed(f"{{kind: Csv, header: true, escape: '\\', {_IDS}}}", b'id,name\n1,"a\\"b"\n'),
    "csv-doubled-quotes": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b'id,name\n1,"a""b"\n'),
    "csv-line-in-a-cell": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b'id,name\n1,"a\nb"\n'),
    "csv-null-value": pushed(f"{{kind: Csv, header: true, nullValue: NA, {_IDS}}}", b"id,name\n1,NA\n2,\n"),
    "csv-utf8": pushed(f"{{kind: Csv, header: true, encoding: utf8, {_IDS}}}", "id,name\n1,\u00e4\n".encode()),
    "csv-date-format": pushed(
        "{kind: Csv, header: true, dateFormat: rfc3339, ddlSchema: [id INT, d DATE]}", b"id,d\n1,2024-01-01\n"
    ),
    "csv-timestamp-format": pushed(
        "{kind: Csv, header: true, timestampFormat: rfc3339, ddlSchema: [id INT, t TIMESTAMP]}",
        b"id,t\n1,2024-01-01T00:00:00+01:00\n",
    ),
    "csv-windows-lines": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\r\n1,a\r\n2,b\r\n"),
    "csv-last-line-open": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\n1,a\n2,b"),
    "csv-blank-lines": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\n1,a\n\n2,b\n"),
    "csv-fewer-cells": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\n1\n2,b\n"),
    "csv-more-cells": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\n1,a,z\n2,b\n"),
    "csv-other-header": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"number,label\n1,a\n"),
    "csv-unreadable-number": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\nx,a\n2,b\n"),
    "csv-header-alone": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"id,name\n"),
    "csv-empty": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b""),
    "csv-mark-of-order": pushed(f"{{kind: Csv, header: true, {_IDS}}}", b"\xef\xbb\xbfid,name\n1,a\n"),
    "csv-scalars": pushed(
        f"{{kind: Csv, header: true, {_TYPES.format(types=_SCALARS)}}}",
        b"a,b,c,d,e,f,g,h,i\n1,2,3,4,1.5,2.5,true,2024-01-01,x\n-1,-2,-3,-4,1e3,-1e-3,false,1969-12-31,\n",
    ),
    "csv-decimals": pushed("{kind: Csv, header: true, ddlSchema: ['x DECIMAL(10,2)']}", b"x\n1.25\n-3.1\n7\n"),
    "csv-required": pushed(
        "{kind: Csv, header: true, ddlSchema: [id BIGINT NOT NULL, name STRING]}", b"id,name\n1,a\n"
    ),
    "csv-odf-schema": pushed(f"{{kind: Csv, header: true, {_ODF}}}", b"id,name\n1,a\n"),
    "csv-words-of-ddl": pushed(
        "{kind: Csv, header: true, ddlSchema: [a INTEGER, b VARCHAR, c TEXT, d BIGINT UNSIGNED, e REAL]}",
        b"a,b,c,d,e\n1,x,y,2,1.5\n",
    ),
    "csv-quoted-names": pushed(
        "{kind: Csv, header: true, ddlSchema: ['\"A b\" BIGINT', 'select STRING']}", b"A b,select\n1,a\n"
    ),
    "csv-names-in-capitals": pushed(
        "{kind: Csv, header: true, ddlSchema: [ID BIGINT, Name STRING]}", b"ID,Name\n1,a\n"
    ),
    "csv-times": pushed(
        "{kind: Csv, header: true, ddlSchema: [id INT, t TIMESTAMP]}",
        b"id,t\n1,2024-01-01\n2,2024-01-01 10:00:00\n3,2024-01-01T10:00:00.123456Z\n4,1900-01-01T00:00:00-05:00\n",
    ),
    "ndjson": pushed(ND, NDJSON),
    "ndjson-without-schema": pushed("{kind: NdJson}", NDJSON),
    "ndjson-utf8": pushed(f"{{kind: NdJson, encoding: utf8, {_IDS}}}", b'{"id":1,"name":"\xc3\xa4"}\n'),
    "ndjson-formats": pushed(f"{{kind: NdJson, dateFormat: rfc3339, timestampFormat: rfc3339, {_IDS}}}", b'{"id":1}\n'),
    "ndjson-more-fields": pushed(f"{{kind: NdJson, {_IDS}}}", b'{"id":1,"name":"a","z":[1]}\n'),
    "ndjson-other-case": pushed(f"{{kind: NdJson, {_IDS}}}", b'{"ID":1,"name":"a"}\n'),
    "ndjson-texts-of-numbers": pushed(f"{{kind: NdJson, {_IDS}}}", b'{"id":"7","name":7}\n'),
    "ndjson-odf-schema": pushed(f"{{kind: NdJson, {_ODF}}}", b'{"id":1,"name":"a"}\n'),
    "ndjson-blank-lines": pushed(f"{{kind: NdJson, {_IDS}}}", b'{"id":1}\n\n{"id":2}\n'),
    "ndjson-nested": pushed("{kind: NdJson}", b'{"id":1,"o":{"a":1,"b":[1,2]},"l":["x"]}\n'),
    "ndjson-empty": pushed(f"{{kind: NdJson, {_IDS}}}", b""),
    "ndjson-twice-the-same-name": pushed(f"{{kind: NdJson, {_IDS}}}", b'{"id":1,"name":"a","name":"a"}\n'),
    "ndjson-large-numbers": pushed(
        "{kind: NdJson, ddlSchema: [d DOUBLE, n BIGINT]}", b'{"d":1e300,"n":9007199254740993}\n'
    ),
    "json": pushed(f"{{kind: Json, {_IDS}}}", b'[{"id":1,"name":"a"},{"id":2,"name":null}]'),
    "json-sub-path": pushed(f"{{kind: Json, subPath: data.rows, {_IDS}}}", _DOCUMENT),
    "json-without-schema": pushed("{kind: Json}", b'[{"id":1,"name":"a"}]'),
    "json-formats": pushed(f"{{kind: Json, encoding: utf8, dateFormat: rfc3339, {_IDS}}}", b'[{"id":1}]'),
    "json-one-object": pushed(f"{{kind: Json, {_IDS}}}", b'{"id":1,"name":"a"}'),
    "json-no-rows": pushed(f"{{kind: Json, {_IDS}}}", b"[]"),
    "geojson": pushed("{kind: GeoJson, ddlSchema: [id BIGINT, name STRING, geometry STRING]}", _COLLECTION),
    "geojson-without-schema": pushed("{kind: GeoJson}", _COLLECTION),
    "ndgeojson": pushed(
        "{kind: NdGeoJson, ddlSchema: [id BIGINT, name STRING, geometry STRING]}", json.dumps(FEATURE).encode() + b"\n"
    ),
    "parquet": pushed(f"{{kind: Parquet, {_IDS}}}", parquet(_TABLE.select(["id", "name"]))),
    "parquet-without-schema": pushed("{kind: Parquet}", parquet(_TABLE)),
    "parquet-fewer-columns": pushed(f"{{kind: Parquet, {_IDS}}}", parquet(_TABLE)),
    "kind-in-small-letters": pushed(f"{{kind: csv, header: true, {_IDS}}}", b"id,name\n1,a\n"),
    "kind-with-a-small-first-letter": pushed(f"{{kind: ndJson, {_IDS}}}", b'{"id":1}\n'),
}
"""Readers and their options."""

MERGES: Final[Mapping[str, ManifestForm]] = {
    "append": pushed(),
    "ledger": pushed(merge=f"{{kind: Ledger, {_KEY}}}"),
    "ledger-with-a-key-twice": pushed(rows=CSV + b"2024-01-03,1,c\n", merge=f"{{kind: Ledger, {_KEY}}}"),
    "ledger-by-two": pushed(merge="{kind: Ledger, primaryKey: [id, name]}"),
    "snapshot": pushed(merge=f"{{kind: Snapshot, {_KEY}}}"),
    "snapshot-comparing": pushed(merge=f"{{kind: Snapshot, {_KEY}, compareColumns: [name]}}"),
    "snapshot-with-a-key-twice": pushed(rows=CSV + b"2024-01-03,1,c\n", merge=f"{{kind: Snapshot, {_KEY}}}"),
    "upserts": pushed(merge=f"{{kind: UpsertStream, {_KEY}}}"),
    "upserts-with-a-key-twice": pushed(rows=CSV + b"2024-01-03,1,c\n", merge=f"{{kind: UpsertStream, {_KEY}}}"),
    "changes": pushed(
        "{kind: Csv, header: true, ddlSchema: [op INT, event_time TIMESTAMP, id BIGINT, name STRING]}",
        b"op,event_time,id,name\n0,2024-01-01,1,a\n2,2024-01-01,1,a\n3,2024-01-02,1,b\n",
        merge=f"{{kind: ChangelogStream, {_KEY}}}",
    ),
    "key-of-no-column": pushed(merge="{kind: Ledger, primaryKey: [nothing]}"),
    "key-in-capitals": pushed(merge="{kind: Ledger, primaryKey: [ID]}"),
    "no-key": pushed(merge="{kind: Ledger, primaryKey: []}"),
    "merge-in-small-letters": pushed(merge="{kind: append}"),
}
"""Merge strategies."""

_TWO = {"2024-01-01.csv": b"id,name\n1,a\n", "2024-01-02.csv": b"id,name\n2,b\n"}
_GLOB = "{kind: FilesGlob, path: 'FOLDER/*.csv', order: ByName%s}"
_FROM_PATH = ", eventTime: {kind: FromPath, pattern: '(\\d+-\\d+-\\d+)\\.csv', timestampFormat: '%Y-%m-%d'}"
_NAMED = f"{{kind: Csv, header: true, {_IDS}}}"

SOURCES: Final[Mapping[str, ManifestForm]] = {
    "file": polled(_one("a.csv"), {"a.csv": CSV}),
    "file-with-a-cache": polled("{kind: Url, url: 'file://FOLDER/a.csv', cache: {kind: Forever}}", {"a.csv": CSV}),
    "file-with-its-own-time": polled(
        "{kind: Url, url: 'file://FOLDER/a.csv', eventTime: {kind: FromSystemTime}}", {"a.csv": CSV}
    ),
    "file-with-headers": polled(
        "{kind: Url, url: 'file://FOLDER/a.csv', headers: [{name: Accept, value: text/csv}]}", {"a.csv": CSV}
    ),
    "file-that-is-not-there": polled(_one("b.csv"), {"a.csv": CSV}),
    "pattern": polled(_GLOB % "", _TWO, read=_NAMED),
    "pattern-with-times": polled(_GLOB % _FROM_PATH, _TWO, read=_NAMED),
    "pattern-by-event-time": polled((_GLOB % _FROM_PATH).replace("ByName", "ByEventTime"), _TWO, read=_NAMED),
    "pattern-of-nothing": polled("{kind: FilesGlob, path: 'FOLDER/*.none', order: ByName}", _TWO, read=_NAMED),
    "pattern-without-order": polled("{kind: FilesGlob, path: 'FOLDER/*.csv'}", _TWO, read=_NAMED),
    "gzip": polled(_one("a.gz"), {"a.gz": gzip.compress(CSV)}, prepare="[{kind: Decompress, format: Gzip}]"),
    "zip": polled(_one("a.zip"), {"a.zip": zipped({"a.csv": CSV})}, prepare="[{kind: Decompress, format: Zip}]"),
    "zip-sub-path": polled(
        _one("a.zip"),
        {"a.zip": zipped({"b.txt": b"no", "in/a.csv": CSV})},
        prepare="[{kind: Decompress, format: Zip, subPath: in/a.csv}]",
    ),
    "zip-pattern": polled(
        _one("a.zip"),
        {"a.zip": zipped({"b.txt": b"no", "a.csv": CSV})},
        prepare="[{kind: Decompress, format: Zip, subPath: '*.csv'}]",
    ),
    "two-steps": polled(
        _one("a.zip"),
        {"a.zip": zipped({"a.csv.gz": gzip.compress(CSV)})},
        prepare="[{kind: Decompress, format: Zip, subPath: a.csv.gz}, {kind: Decompress, format: gzip}]",
    ),
    "pipe": polled(_one("a.csv"), {"a.csv": CSV}, prepare="[{kind: Pipe, command: [cat]}]"),
    "container": polled("{kind: Container, image: 'example/none:1'}", {}),
    "mqtt": ManifestForm(
        document(
            "NAME",
            "{kind: SetPollingSource, fetch: {kind: Mqtt, host: localhost, port: 1883, topics: [{path: a/b, "
            f"qos: AtMostOnce}}]}}, read: {ND}, merge: {{kind: Append}}}}",
        )
    ),
    "ethereum": ManifestForm(
        document(
            "NAME",
            "{kind: SetPollingSource, fetch: {kind: EthereumLogs, chainId: 1, filter: 'block_number > 1', signature: "
            "'event A(address indexed a)'}, read: {kind: Parquet}, merge: {kind: Append}}",
        )
    ),
    "ledger-of-files": polled(_GLOB % "", _TWO, read=_NAMED, merge=f"{{kind: Ledger, {_KEY}}}"),
}  # fmt: skip
"""Polling sources and what prepares their files."""

_VOCAB = "{kind: SetVocab, eventTimeColumn: at%s}"
_AT = "{kind: Csv, header: true, ddlSchema: [at TIMESTAMP, id BIGINT]}"
_AT_ROWS = b"at,id\n2024-01-01,1\n"
_PUSH = f"{{kind: AddPushSource, sourceName: %s, read: {READ}, merge: {{kind: Append}}}}"

DATASETS: Final[Mapping[str, ManifestForm]] = {
    "no-events": ManifestForm(document("NAME", "")),
    "vocabulary": pushed(_AT, _AT_ROWS, more=_VOCAB % ""),
    "whole-vocabulary": pushed(
        _AT, _AT_ROWS, more=_VOCAB % ", offsetColumn: o, operationTypeColumn: p, systemTimeColumn: s"
    ),
    "vocabulary-after-the-source": ManifestForm(
        document("NAME", _PUSH % "default" + "\n" + _VOCAB % "").replace("event_time TIMESTAMP", "at TIMESTAMP"),
        {"rows": CSV},
        "ingest",
    ),
    "vocabulary-of-empty-names": pushed(more="{kind: SetVocab, eventTimeColumn: ''}"),
    "information": pushed(more="{kind: SetInfo, description: A b, keywords: [x, y]}"),
    "no-keywords": pushed(more="{kind: SetInfo, keywords: []}"),
    "licence": pushed(
        more="{kind: SetLicense, shortName: CC, name: Commons, spdxId: CC-BY-4.0, websiteUrl: 'https://example.org/'}"
    ),
    "licence-without-identifier": pushed(more="{kind: SetLicense, shortName: X, name: Y, websiteUrl: 'https://a.org'}"),
    "licence-without-address": pushed(more="{kind: SetLicense, shortName: X, name: Y, websiteUrl: 'none'}"),
    "attachments": pushed(
        more="{kind: SetAttachments, attachments: {kind: Embedded, items: [{path: README.md, content: '# A'}]}}"
    ),
    "no-attachments": pushed(more="{kind: SetAttachments, attachments: {kind: Embedded, items: []}}"),
    "declared-columns": pushed(
        more="{kind: SetDataSchema, schema: {fields: [{name: offset, type: UInt64}, {name: op, type: Int32}, "
        "{name: system_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}, "
        "{name: event_time, type: {kind: Option, inner: {kind: Timestamp, unit: Millisecond, timezone: UTC}}}, "
        "{name: id, type: {kind: Option, inner: Int64}}, {name: name, type: {kind: Option, inner: String}}]}}"
    ),
    "two-push-sources": ManifestForm(document("NAME", _PUSH % "a" + "\n" + _PUSH % "b")),
    "push-source-twice": ManifestForm(document("NAME", _PUSH % "a" + "\n" + _PUSH % "a")),
    "push-source-without-a-name": ManifestForm(
        document("NAME", f"{{kind: AddPushSource, read: {READ}, merge: {{kind: Append}}}}")
    ),
    "push-and-polling-source": ManifestForm(
        document(
            "NAME",
            _PUSH % "a" + f"\n{{kind: SetPollingSource, fetch: {_one('a')}, read: {READ}, merge: {{kind: Append}}}}",
        )
    ),
    "disabled-source": ManifestForm(
        document("NAME", _PUSH % "a" + "\n{kind: DisablePushSource, sourceName: a}")
    ),
    "disabled-source-that-is-not-there": ManifestForm(document("NAME", "{kind: DisablePushSource, sourceName: a}")),
    "seed-in-a-manifest": ManifestForm(
        document("NAME", f"{{kind: Seed, datasetId: 'did:odf:fed01{'61' * 32}', datasetKind: Root}}")
    ),
    "unknown-event": ManifestForm(document("NAME", "{kind: SetSomething}")),
    "unknown-field": ManifestForm(document("NAME", "{kind: SetInfo, descriptions: a}")),
    "event-in-small-letters": ManifestForm(document("NAME", "{kind: setInfo, description: a}")),
    "kind-of-dataset-in-small-letters": ManifestForm(document("NAME", "").replace("kind: Root", "kind: root")),
    "version-2": ManifestForm(document("NAME", "").replace("version: 1", "version: 2")),
    "version-in-quotes": ManifestForm(document("NAME", "").replace("version: 1", "version: '1'")),
    "no-version": ManifestForm(document("NAME", "").replace("version: 1\n", "")),
    "name-with-account": ManifestForm(document("someone/NAME", "")),
    "name-in-capitals": ManifestForm(document("NAME", "").replace("NAME", "NAME.Capitals")),
    "name-with-underscores": ManifestForm(document("NAME_x", "")),
    "fields-in-snake-case": ManifestForm(
        document("NAME", "{kind: SetLicense, short_name: X, name: Y, website_url: 'https://a.org'}")
    ),
    "templates": ManifestForm(
        document("NAME", "{kind: SetInfo, description: '${{ env.NONE || env.HOME_OF_NOBODY }}'}")
    ),
    "anchors": ManifestForm(document("NAME", "{kind: SetInfo, description: &a text, keywords: [*a]}")),
    "root-with-a-transform": ManifestForm(
        document(
            "NAME",
            "{kind: SetTransform, inputs: [{datasetRef: rows}], transform: {kind: Sql, engine: datafusion, query: "
            "SELECT 1}}",
        )
    ),
    "derivative-without-a-transform": ManifestForm(document("NAME", "", kind="Derivative")),
    "derivative-with-a-source": ManifestForm(document("NAME", _PUSH % "a", kind="Derivative")),
}  # fmt: skip
"""What a dataset says of itself, and the form of its manifest."""

FORMS: Final[Mapping[str, ManifestForm]] = {
    f"{kind}-{name}": form
    for kind, forms in (("read", READERS), ("merge", MERGES), ("source", SOURCES), ("set", DATASETS))
    for name, form in forms.items()
}
"""All forms by name."""
