# ruff: noqa: E501 -- messages are compared as the one line they are
"""Rules of snapshots: what each kind of dataset may state, how queries, inputs and sources are brought to one form."""

import pytest

from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    DatasetKind,
    SetInfo,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odf_protocol.manifest import (
    DatasetSnapshot,
    ManifestError,
    SnapshotError,
    normalize_added_event,
    normalize_snapshot,
)
from support.manifests import parse_manifest

PUSH = "- {kind: AddPushSource, sourceName: default, read: Parquet, merge: Append}\n"
POLLING = "- {kind: SetPollingSource, fetch: {kind: Url, url: 'https://x'}, read: Parquet, merge: Append}\n"
SEED = f"- {{kind: Seed, datasetId: 'did:odf:fed01{'0' * 64}', datasetKind: Root}}\n"


def parse(metadata: str, *, kind: str = "Root", name: str = "orders"):
    head = f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: {kind}\n  metadata:\n"
    body = "".join(f"    {line}\n" for line in metadata.splitlines())
    return parse_manifest(head + (body or "    []\n"), source_name="m")


def message_of(metadata: str, *, kind: str = "Root", name: str = "orders") -> str:
    with pytest.raises(ManifestError) as caught:
        parse(metadata, kind=kind, name=name)
    return str(caught.value)


def transform_of(transform: str, inputs: str = "[{datasetRef: a}]") -> str:
    return f"- kind: SetTransform\n  inputs: {inputs}\n  transform: {{kind: Sql, engine: spark, {transform}}}\n"


NOT_FOR_USERS = {
    "Seed": SEED,
    "AddData": "- kind: AddData\n",
    "ExecuteTransform": "- {kind: ExecuteTransform, queryInputs: []}\n",
    "DisablePushSource": "- {kind: DisablePushSource, sourceName: a}\n",
    "DisablePollingSource": "- kind: DisablePollingSource\n",
}


@pytest.mark.parametrize("kind", ["Root", "Derivative"])
@pytest.mark.parametrize(("name", "event"), NOT_FOR_USERS.items(), ids=NOT_FOR_USERS.keys())
def test_event_of_the_node_is_rejected(name, event, kind):
    assert message_of(event, kind=kind) == (
        f"m:7:{13 if event[2] == 'k' else 14}: content.metadata[0].kind: "
        f"expected an event that defines a dataset, found {name}, which a node writes by itself"
    )


def test_root_has_no_transform():
    expected = "m:7:13: content.metadata[0].kind: expected no transform in a Root dataset, found SetTransform"
    assert message_of(transform_of("query: x")) == expected


@pytest.mark.parametrize("source", [PUSH, POLLING], ids=["push", "polling"])
def test_derivative_has_no_source(source):
    assert "content.metadata[0].kind: expected no source in a Derivative dataset, found" in message_of(
        source, kind="Derivative"
    )


def test_query_becomes_a_list_of_one():
    (event,) = parse(transform_of("query: SELECT 1"), kind="Derivative").metadata
    assert event == SetTransform(
        inputs=(TransformInput(dataset_ref="a", alias="a"),),
        transform=TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT 1"),)),
    )


def test_preprocess_of_both_sources_is_normalized():
    sources = (PUSH, POLLING)
    for source in sources:
        text = source.replace("merge:", "preprocess: {kind: Sql, engine: spark, query: x}, merge:")
        (event,) = parse(text).metadata
        assert event.preprocess == TransformSql(engine="spark", queries=(SqlQueryStep(query="x"),))


def test_missing_alias_is_the_reference_as_written():
    did = "did:odf:fed01" + "0" * 64
    (event,) = parse(
        transform_of("query: x", f"[{{datasetRef: Acme/A.b}}, {{datasetRef: '{did}'}}]"), kind="Derivative"
    ).metadata
    assert [given.alias for given in event.inputs] == ["Acme/A.b", did]


TRANSFORMS = {
    "no-query": ("version: '1'", "transform: expected a query, found none"),
    "empty-queries": ("queries: []", "transform: expected a query, found none"),
    "both": ("query: x, queries: [{query: x}]", "transform.queries: expected either 'query' or 'queries', found both"),
    "two-unnamed": (
        "queries: [{query: x}, {query: y}]",
        "transform.queries[0]: expected an alias for every query but the last, found none",
    ),
    "all-named": (
        "queries: [{query: x, alias: a}]",
        "transform.queries[0]: expected no alias for the last query, which is the result, found one",
    ),
    "unnamed-first": (
        "queries: [{query: x}, {query: y, alias: b}]",
        "transform.queries[0]: expected the query without alias, which is the result, as the last, found it earlier",
    ),
}


@pytest.mark.parametrize(("transform", "expected"), TRANSFORMS.values(), ids=TRANSFORMS.keys())
def test_transform_that_has_no_one_result_is_rejected(transform, expected):
    message = message_of(transform_of(transform), kind="Derivative")
    assert message.startswith("m:9:")
    assert message.endswith(f"content.metadata[0].{expected}")


INPUTS = {
    "none": ("[]", "inputs: expected at least one input, found none"),
    "twice": (
        "[{datasetRef: a.b}, {datasetRef: A.B, alias: c}]",
        "inputs[1].datasetRef: expected each input once, found 'A.B' again",
    ),
    "same-alias": (
        "[{datasetRef: a, alias: x}, {datasetRef: b, alias: x}]",
        "inputs[1]: expected inputs with different aliases, found 'x' again",
    ),
    "alias-like-another-name": (
        "[{datasetRef: a}, {datasetRef: b, alias: a}]",
        "inputs[1]: expected inputs with different aliases, found 'a' again",
    ),
    "no-name": (
        "[{datasetRef: 'a b'}]",
        "inputs[0].datasetRef: expected a dataset's id or name, found 'a b' (malformed",
    ),
    "bad-id": (
        "[{datasetRef: 'did:odf:x'}]",
        "inputs[0].datasetRef: expected a dataset's id or name, found 'did:odf:x' (",
    ),
}


@pytest.mark.parametrize(("inputs", "expected"), INPUTS.values(), ids=INPUTS.keys())
def test_inputs_that_cannot_be_told_apart_or_resolved_are_rejected(inputs, expected):
    assert f"content.metadata[0].{expected}" in message_of(transform_of("query: x", inputs), kind="Derivative")


def test_push_sources_with_different_names_go_together():
    assert len(parse(PUSH + PUSH.replace("default", "other")).metadata) == 2


SOURCES = {
    "push-twice": (
        PUSH + PUSH,
        "m:8:41: content.metadata[1].sourceName: expected push sources with different names, found 'default' again",
    ),
    "polling-twice": (POLLING + POLLING, "content.metadata[1]: expected a single source where there is a polling one"),
    "push-after-polling": (POLLING + PUSH, "found AddPushSource after SetPollingSource"),
    "polling-after-push": (PUSH + POLLING, "found SetPollingSource after another source"),
}


@pytest.mark.parametrize(("metadata", "expected"), SOURCES.values(), ids=SOURCES.keys())
def test_sources_that_exclude_each_other_are_rejected(metadata, expected):
    assert expected in message_of(metadata)


READS = {
    "two-schemas": ("{kind: NdJson, ddlSchema: [], schema: {fields: []}}", "read.ddlSchema: expected either 'schema' or 'ddlSchema', found both"),
    "bad-ddl": (
        "{kind: NdJson, ddlSchema: [a INT, b TINYINT]}",
        ("read.ddlSchema: expected columns like 'name TYPE [NOT NULL]', found unsupported SQL type in ddlSchema "
        "at column definition 2, character 3: TINYINT"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "expected"), READS.values(), ids=READS.keys())
def test_schema_that_cannot_be_read_is_rejected(read, expected):
    assert f"content.metadata[0].{expected}" in message_of(PUSH.replace("Parquet", read))


MERGES = {
    "empty-key": ("{kind: Ledger, primaryKey: []}", "merge.primaryKey: expected at least one column, found none"),
    "key-twice": (
        "{kind: Snapshot, primaryKey: [a, b, a]}",
        "merge.primaryKey[2]: expected each column once, found 'a' again",
    ),
    "empty-comparison": (
        "{kind: Snapshot, primaryKey: [a], compareColumns: []}",
        "merge.compareColumns: expected at least one",
    ),
}


@pytest.mark.parametrize(("merge", "expected"), MERGES.values(), ids=MERGES.keys())
def test_key_that_names_nothing_or_twice_is_rejected(merge, expected):
    assert f"content.metadata[0].{expected}" in message_of(PUSH.replace("Append", merge))


FETCHES = {
    "url": ("{kind: Url, url: 'https://${{ x }}'}", "fetch.url: expected a template like ${{ env.NAME || 'default' }}"),
    "header": (
        "{kind: Url, url: x, headers: [{name: a, value: '${{'}]}",
        "fetch.headers[0].value: expected a template",
    ),
    "argument": ("{kind: Container, image: x, args: [a, '${{ }}']}", "fetch.args[1]: expected a template"),
    "variable": (
        "{kind: Container, image: x, env: [{name: A}, {name: B, value: '${{'}]}",
        "fetch.env[1].value: expected",
    ),
    "no-chain": ("{kind: EthereumLogs}", "fetch: expected 'chainId' or 'nodeUrl', found neither"),
}


@pytest.mark.parametrize(("fetch", "expected"), FETCHES.values(), ids=FETCHES.keys())
def test_fetch_step_that_cannot_work_is_rejected(fetch, expected):
    assert f"content.metadata[0].{expected}" in message_of(POLLING.replace("{kind: Url, url: 'https://x'}", fetch))


def test_good_templates_are_published_as_written():
    (event,) = parse(POLLING.replace("https://x", 'https://x?k=${{ env.KEY || "none" }}'.replace('"', "''"))).metadata
    assert event.fetch.url == "https://x?k=${{ env.KEY || 'none' }}"


@pytest.mark.parametrize("schema", ["", ", rawArrowSchema: AAAA", ", rawArrowSchema: AAAA, schema: {fields: []}"])
def test_schema_is_stated_in_odf_types(schema):
    assert "content.metadata[0]" in message_of(f"- {{kind: SetDataSchema{schema}}}\n")


@pytest.mark.parametrize("name", ["a b", "a/b", "-a", "a..b", "ä", "x" * 101])
def test_name_outside_the_grammar_is_rejected(name):
    assert "m:4:9: content.name: expected a dataset's name, found" in message_of("", name=name)


def test_rules_are_an_error_of_their_own_on_objects():
    snapshot = DatasetSnapshot(
        name="a",
        kind=DatasetKind.DERIVATIVE,
        metadata=(SetInfo(), SetTransform(inputs=(), transform=TransformSql(engine="x"))),
    )
    with pytest.raises(SnapshotError) as caught:
        normalize_snapshot(snapshot)
    assert isinstance(caught.value, RejectedError)
    assert caught.value.path == ("metadata", 1, "inputs")
    assert str(caught.value) == "breaks snapshot rules at metadata.1.inputs: expected at least one input, found none"


def added(event: str, kind: DatasetKind):
    written = parse_manifest(f"kind: MetadataEvent\nversion: 1\ncontent: {event}\n", source_name="m")
    return normalize_added_event(written, kind)


def test_added_event_is_normalized_and_held_to_the_rules():
    event = added(
        "{kind: SetTransform, inputs: [{datasetRef: a}], transform: {kind: Sql, engine: x, query: y}}",
        DatasetKind.DERIVATIVE,
    )
    assert event.transform.queries == (SqlQueryStep(query="y"),)
    with pytest.raises(SnapshotError, match=r"at kind: expected no transform in a Root dataset"):
        added(
            "{kind: SetTransform, inputs: [{datasetRef: a}], transform: {kind: Sql, engine: x, query: y}}",
            DatasetKind.ROOT,
        )
    with pytest.raises(SnapshotError, match=r"at kind: expected an event that defines a dataset, found AddData"):
        added("AddData", DatasetKind.ROOT)
