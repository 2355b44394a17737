"""The field decides what a word means; spellings, short forms and absent fields are read as ODF allows."""

import pytest

from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    DataTypeUInt8,
    DisablePollingSource,
    ExtraAttributes,
    MergeStrategyAppend,
    ReadStepCsv,
    ReadStepNdGeoJson,
    SetDataSchema,
    SetInfo,
    SetVocab,
    SourceState,
    TransformSql,
)
from odf_protocol.manifest.nodes import Node
from odf_protocol.manifest.scalar_readers import spellings_of
from support.manifests import parse_manifest


def event_of(content: str):
    return parse_manifest(f"kind: MetadataEvent\nversion: 1\ncontent: {content}\n", source_name="m")


@pytest.mark.parametrize(
    "word",
    ["no", "on", "Yes", "2020-01-01", "2020-01-01T00:00:00Z", "1e3", "0777", "12:30", "1_000", "=", ".inf"],
)
def test_words_that_yaml_readers_convert_stay_texts_in_text_fields(word):
    assert event_of(f"{{kind: SetInfo, description: {word}, keywords: [{word}]}}") == SetInfo(
        description=word, keywords=(word,)
    )


@pytest.mark.parametrize("word", ["null", "~", "Null", "NULL", ""])
def test_null_in_an_optional_field_is_absence(word):
    assert event_of(f"{{kind: SetInfo, description: {word}}}") == SetInfo()
    assert event_of(f"{{kind: SetInfo, description: '{word}'}}") == SetInfo(description=word)


def test_engine_version_like_a_number_stays_a_text():
    preprocess = "{kind: Sql, engine: spark, version: 1.0, query: x}"
    source = f"{{kind: AddPushSource, sourceName: a, read: Parquet, merge: Append, preprocess: {preprocess}}}"
    assert event_of(source).preprocess == TransformSql(engine="spark", version="1.0", query="x")


@pytest.mark.parametrize("spelling", ["NdGeoJson", "ndGeoJson", "ndgeojson"])
def test_kind_is_read_in_three_spellings(spelling):
    event = event_of(f"{{kind: AddPushSource, sourceName: a, read: {{kind: {spelling}}}, merge: {{kind: append}}}}")
    assert event == AddPushSource(source_name="a", read=ReadStepNdGeoJson(), merge=MergeStrategyAppend())


def test_kind_may_stand_anywhere_in_the_map():
    assert event_of("{description: x, kind: setInfo}") == SetInfo(description="x")


@pytest.mark.parametrize("text", ["DisablePollingSource", "disablepollingsource", "{kind: DisablePollingSource}"])
def test_event_without_fields_has_a_short_form(text):
    assert event_of(text) == DisablePollingSource()


def test_member_with_optional_fields_only_has_a_short_form():
    assert event_of("SetVocab") == SetVocab()
    schema = "{fields: [{name: t, type: {kind: Option, inner: Timestamp}}, {name: u, type: uint8}]}"
    assert event_of(f"{{kind: SetDataSchema, schema: {schema}}}") == SetDataSchema(
        schema=DataSchema(
            fields=(
                DataField(name="t", type=DataTypeOption(inner=DataTypeTimestamp())),
                DataField(name="u", type=DataTypeUInt8()),
            )
        )
    )


def test_table_with_a_field_called_kind_is_no_union():
    event = event_of("{kind: AddData, newSourceState: {sourceName: a, kind: odf/etag, value: x}}")
    assert event.new_source_state == SourceState(source_name="a", kind="odf/etag", value="x")


def test_attributes_are_read_as_yaml_1_2_says():
    extra = "{a: no, b: true, c: 1, d: 1.5, e: null, f: '1', g: [2020-01-01, {h: 0x10}], i: 0777}"
    event = event_of(f"{{kind: SetDataSchema, schema: {{fields: [], extra: {extra}}}}}")
    expected = {
        "a": "no",
        "b": True,
        "c": 1,
        "d": 1.5,
        "e": None,
        "f": "1",
        "g": ["2020-01-01", {"h": 16}],
        "i": "0777",
    }
    assert event.schema.extra == ExtraAttributes.of(expected)


def test_empty_list_differs_from_an_absent_one():
    assert event_of("{kind: SetInfo, keywords: []}") == SetInfo(keywords=())
    assert event_of("{kind: SetInfo, keywords: }") == SetInfo()


def test_csv_reads_every_kind_of_scalar():
    fields = "[{name: a, type: string}]"
    options = f"header: True, inferSchema: false, separator: ';', nullValue: 'null', schema: {{fields: {fields}}}"
    read = f"{{kind: Csv, {options}}}"
    event = event_of(f"{{kind: AddPushSource, sourceName: a, merge: append, read: {read}}}")
    schema = DataSchema(fields=(DataField(name="a", type=DataTypeString()),))
    assert event.read == ReadStepCsv(header=True, infer_schema=False, separator=";", null_value="null", schema=schema)


def test_spellings_of_a_name_are_three():
    assert sorted(spellings_of([("UInt8", 1)])) == ["UInt8", "uInt8", "uint8"]


def test_nodes_are_the_only_shapes_of_a_text():
    assert {shape.__name__ for shape in Node.__args__} == {"ScalarNode", "ListNode", "MapNode"}
