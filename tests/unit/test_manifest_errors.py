# ruff: noqa: E501 -- messages are compared as the one line they are
"""Every mistake in a manifest is answered with its place, what would be right, what is there, and a near word."""

import pytest

from odf_protocol.errors import MalformedError
from odf_protocol.manifest import ManifestError, parse_manifests, parse_snapshots
from support.manifests import parse_manifest

HEAD = "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: orders\n  kind: Root\n  metadata:\n"


def message_of(metadata: str) -> str:
    """Message of a snapshot whose metadata starts in line 7, indented by 4."""
    with pytest.raises(ManifestError) as caught:
        parse_manifest(HEAD + metadata, source_name="orders.yaml")
    return str(caught.value)


def message_of_text(text: str | bytes, name: str = "m.yaml") -> str:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, source_name=name)
    return str(caught.value)


def test_error_carries_its_facts_as_fields():
    with pytest.raises(ManifestError) as caught:
        parse_manifest(HEAD + "    - kind: SetInfo\n      keyword: [a]\n", source_name="orders.yaml")
    error = caught.value
    assert isinstance(error, MalformedError)
    assert (error.source_name, error.line, error.column) == ("orders.yaml", 8, 7)
    assert error.path == "content.metadata[0]"
    assert error.expected == "a field of SetInfo (description, keywords)"
    assert error.found == "'keyword'"
    assert error.nearest == "keywords"


MISTAKES = {
    "unknown-event": (
        "    - kind: SetInof\n",
        (
            "orders.yaml:7:13: content.metadata[0].kind: expected a kind of MetadataEvent (AddData, ExecuteTransform, "
            "Seed, SetPollingSource, SetTransform, SetVocab, SetAttachments, SetInfo, SetLicense, SetDataSchema, AddPushSource, "
            "DisablePushSource, DisablePollingSource), found SetInof; did you mean 'SetInfo'?"
        ),
    ),
    "kind-in-another-spelling": (
        "    - kind: SETINFO\n",
        "DisablePollingSource), found SETINFO; did you mean 'SetInfo'?",
    ),
    "columns-in-ddl-under-the-name-of-a-schema": (
        (
            "    - kind: AddPushSource\n      sourceName: a\n      read: {kind: Csv, schema: [a INT]}\n"
            "      merge: {kind: Append}\n"
        ),
        "a list of texts like 'id BIGINT' is ddlSchema), found a list of 1; did you mean 'ddlSchema'?",
    ),
    "unknown-field-in-snake-case": (
        "    - kind: SetLicense\n      short_name: x\n",
        (
            "orders.yaml:8:7: content.metadata[0]: expected a field of SetLicense (shortName, name, spdxId, websiteUrl), "
            "found 'short_name'; did you mean 'shortName'?"
        ),
    ),
    "field-of-a-member-without-fields": (
        (
            "    - kind: AddPushSource\n      sourceName: a\n      read: {kind: Parquet}\n"
            "      merge: {kind: Append, primaryKey: [a]}\n"
        ),
        (
            "orders.yaml:10:29: content.metadata[0].merge: expected no more fields, MergeStrategyAppend has none, "
            "found 'primaryKey'"
        ),
    ),
    "missing-field": (
        "    - kind: AddPushSource\n      sourceName: a\n      read: {kind: Parquet}\n",
        (
            "orders.yaml:7:7: content.metadata[0]: expected the field 'merge' of AddPushSource, "
            "found only kind, sourceName, read"
        ),
    ),
    "short-form-of-a-member-with-fields": (
        "    - kind: AddPushSource\n      sourceName: a\n      read: Parquet\n      merge: Ledger\n",
        (
            "orders.yaml:10:14: content.metadata[0].merge: expected the field 'primaryKey' of MergeStrategyLedger, "
            "found Ledger"
        ),
    ),
    "missing-kind": (
        "    - description: x\n",
        (
            "orders.yaml:7:7: content.metadata[0]: expected the field 'kind' of MetadataEvent (AddData, ExecuteTransform, "
            "Seed, SetPollingSource, SetTransform, SetVocab, SetAttachments, SetInfo, SetLicense, SetDataSchema, "
            "AddPushSource, DisablePushSource, DisablePollingSource), found only description"
        ),
    ),
    "list-instead-of-map": (
        "    - [a, b]\n",
        "orders.yaml:7:7: content.metadata[0]: expected a MetadataEvent, found a list of 2",
    ),
    "text-instead-of-list": (
        "    - kind: SetInfo\n      keywords: covid\n",
        "orders.yaml:8:17: content.metadata[0].keywords: expected a list, found covid",
    ),
    "null-in-a-list": (
        "    - kind: SetInfo\n      keywords: [a, null]\n",
        "orders.yaml:8:21: content.metadata[0].keywords[1]: expected a text, found null (in quotes it would be a text)",
    ),
    "nothing-instead-of-text": (
        (
            "    - kind: SetAttachments\n      attachments:\n        kind: Embedded\n        items:\n"
            "          - path:\n            content: x\n"
        ),
        "orders.yaml:11:18: content.metadata[0].attachments.items[0].path: expected a text, found nothing",
    ),
    "yaml-1.1-boolean": (
        "    - kind: AddPushSource\n      sourceName: a\n      read: {kind: Csv, header: yes}\n      merge: Append\n",
        "orders.yaml:9:33: content.metadata[0].read.header: expected true or false, found yes; did you mean 'true'?",
    ),
    "quoted-boolean": (
        (
            "    - kind: AddPushSource\n      sourceName: a\n      read: {kind: Csv, header: 'true'}\n"
            "      merge: Append\n"
        ),
        "content.metadata[0].read.header: expected true or false, found 'true'",
    ),
    "float-instead-of-integer": (
        (
            "    - kind: AddPushSource\n      sourceName: a\n      read:\n        kind: NdJson\n        schema:\n"
            "          fields:\n            - {name: x, type: {kind: Decimal, precision: 1e1, scale: 2}}\n"
            "      merge: Append\n"
        ),
        (
            "orders.yaml:13:58: content.metadata[0].read.schema.fields[0].type.precision: "
            "expected a whole number from 0 to 4294967295, found 1e1"
        ),
    ),
    "integer-out-of-range": (
        (
            "    - kind: AddPushSource\n      sourceName: a\n      read:\n        kind: NdJson\n        schema:\n"
            "          fields:\n            - {name: x, type: {kind: Decimal, precision: -1, scale: 2}}\n"
            "      merge: Append\n"
        ),
        "expected a whole number from 0 to 4294967295, found -1",
    ),
    "unknown-type-name": (
        "    - kind: SetDataSchema\n      schema:\n        fields:\n          - {name: a, type: Strng}\n",
        (
            "orders.yaml:10:29: content.metadata[0].schema.fields[0].type: expected a kind of DataType (Binary, Bool, "
            "Date, Decimal, Duration, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16 and 10 more), "
            "found Strng; did you mean 'String'?"
        ),
    ),
    "unknown-enum-member": (
        (
            "    - kind: SetPollingSource\n      fetch: {kind: Url, url: 'https://x'}\n"
            "      prepare: [{kind: Decompress, format: Gz}]\n      read: Parquet\n      merge: Append\n"
        ),
        (
            "orders.yaml:9:44: content.metadata[0].prepare[0].format: expected one of Gzip, Zip, found Gz; "
            "did you mean 'Gzip'?"
        ),
    ),
    "infinite-attribute": (
        "    - kind: SetDataSchema\n      schema: {fields: [], extra: {a: [.inf]}}\n",
        "orders.yaml:8:40: content.metadata[0].schema.extra.a[0]: expected a number that JSON can hold, found .inf",
    ),
    "attribute-beyond-64-bits": (
        "    - kind: SetDataSchema\n      schema: {fields: [], extra: {a: 18446744073709551616}}\n",
        "content.metadata[0].schema.extra.a: expected a whole number of at most 64 bits, found 18446744073709551616",
    ),
    "base64": (
        "    - kind: SetDataSchema\n      rawArrowSchema: '%'\n",
        "orders.yaml:8:23: content.metadata[0].rawArrowSchema: expected bytes in base64, found '%'",
    ),
}


@pytest.mark.parametrize(("metadata", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_is_answered_with_place_and_remedy(metadata, expected):
    assert message_of(metadata).endswith(expected)


ENVELOPES = {
    "no-manifest": ("- a\n", "m.yaml:1:1: expected a manifest with kind, version, content, found a list of 1"),
    "unknown-kind": (
        "kind: DatasetSnapsot\nversion: 1\ncontent: {}\n",
        (
            "m.yaml:1:7: kind: expected DatasetSnapshot, MetadataEvent, MetadataBlock, found DatasetSnapsot; "
            "did you mean 'DatasetSnapshot'?"
        ),
    ),
    "unknown-field": (
        "kind: MetadataEvent\nversion: 1\ncontents: {}\n",
        (
            "m.yaml:3:1: expected a field of a manifest (kind, version, content), found 'contents'; "
            "did you mean 'content'?"
        ),
    ),
    "missing-version": (
        "kind: MetadataEvent\ncontent: {}\n",
        "m.yaml:1:1: expected the field 'version' of a manifest, found only kind, content",
    ),
    "future-version": (
        "kind: MetadataBlock\nversion: 4\ncontent: {}\n",
        "m.yaml:2:10: version: expected version 2 or 3 of MetadataBlock, found 4",
    ),
    "quoted-version": (
        "kind: MetadataEvent\nversion: '1'\ncontent: {}\n",
        "m.yaml:2:10: version: expected version 1 of MetadataEvent, found '1'",
    ),
    "date-without-time": (
        (
            "kind: MetadataBlock\nversion: 3\ncontent: {systemTime: 2020-01-01, sequenceNumber: 0, "
            "event: {kind: SetInfo}}\n"
        ),
        "m.yaml:3:23: content.systemTime: expected a time like 2020-01-31T12:00:00Z, found 2020-01-01",
    ),
    "bad-hash": (
        (
            "kind: MetadataBlock\nversion: 3\ncontent: {systemTime: 2020-01-01T00:00:00Z, prevBlockHash: f16, "
            "sequenceNumber: 0, event: {kind: SetInfo}}\n"
        ),
        "m.yaml:3:60: content.prevBlockHash: expected a hash like f1620…, found f16 (malformed",
    ),
    "bad-id": (
        "kind: MetadataEvent\nversion: 1\ncontent: {kind: Seed, datasetId: orders, datasetKind: Root}\n",
        "m.yaml:3:34: content.datasetId: expected a dataset id like did:odf:fed01…, found orders (malformed",
    ),
}


@pytest.mark.parametrize(("text", "expected"), ENVELOPES.values(), ids=ENVELOPES.keys())
def test_envelope_mistake_is_answered_with_place_and_remedy(text, expected):
    assert message_of_text(text).startswith(expected)


def test_event_is_rejected_where_a_snapshot_is_asked_for():
    with pytest.raises(ManifestError, match=r"m\.yaml:1:7: kind: expected DatasetSnapshot, found MetadataEvent"):
        parse_snapshots("kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo}\n", source_name="m.yaml")


def test_second_document_is_counted_in_lines_of_the_file():
    text = HEAD + "    []\n---\n" + HEAD.replace("Root", "Rot") + "    []\n"
    assert message_of_text(text) == (
        "m.yaml:13:9: content.kind: expected one of Root, Derivative, found Rot; did you mean 'Root'?"
    )


def test_long_and_unprintable_values_are_cut_in_messages():
    message = message_of_text(f"kind: {'x' * 500}\nversion: 1\ncontent: {{}}\n")
    assert len(message) < 200
    message = message_of_text('kind: "a\\x1b[31m\\nb"\nversion: 1\ncontent: {}\n')
    assert "\x1b" not in message
    assert "\n" not in message
