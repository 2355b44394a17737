# ruff: noqa: E501 -- a case a line
"""Manifests as they are printed: long form, kind first, absent fields left out, quotes where readers need them."""

import json

import pytest

from odf_protocol.block import decode_block, encode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddData,
    AddPushSource,
    AttachmentsEmbedded,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeOption,
    DataTypeTimestamp,
    ExtraAttributes,
    MergeStrategyAppend,
    OffsetInterval,
    ReadStepCsv,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
)
from odf_protocol.manifest import (
    BlockManifest,
    DatasetSnapshot,
    iter_log_yaml,
    manifest_to_json,
    manifest_to_plain,
    manifest_to_yaml,
    parse_manifests,
)
from odf_protocol.manifest.nodes import format_float, needs_quotes, resolve_plain
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

HASH = Multihash.of_sha3_256(b"")
NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def content_of(event) -> str:
    """YAML of an event, without envelope and indentation."""
    lines = manifest_to_yaml(event).splitlines()[3:]
    return "\n".join(line.removeprefix("  ") for line in lines) + "\n"


def test_block_is_written_in_the_order_of_its_fields():
    block = BlockManifest(
        version=3, system_time=NOON, prev_block_hash=HASH, sequence_number=7, event=AddData(prev_offset=0)
    )
    assert manifest_to_yaml(block) == (
        "kind: MetadataBlock\nversion: 3\ncontent:\n  systemTime: 2020-01-01T12:00:00Z\n"
        f"  prevBlockHash: {HASH}\n  sequenceNumber: 7\n  event:\n    kind: AddData\n    prevOffset: 0\n"
    )
    assert json.loads(manifest_to_json(block)) == {
        "kind": "MetadataBlock",
        "version": 3,
        "content": {
            "systemTime": "2020-01-01T12:00:00Z",
            "prevBlockHash": str(HASH),
            "sequenceNumber": 7,
            "event": {"kind": "AddData", "prevOffset": 0},
        },
    }


def test_first_block_has_no_predecessor():
    seed = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.DERIVATIVE)
    raw = encode_block(seed, system_time=NOON, prev_block_hash=None, sequence_number=0, version=2)
    text = manifest_to_yaml(decode_block(raw, expected_hash=None))
    assert "version: 2\n" in text
    assert "prevBlockHash" not in text
    assert text.endswith(f"    kind: Seed\n    datasetId: did:odf:fed01{'0' * 64}\n    datasetKind: Derivative\n")


def test_nested_objects_lists_and_long_form():
    event = AddPushSource(
        source_name="default",
        read=ReadStepCsv(
            header=True,
            separator=",",
            schema=DataSchema(fields=(DataField(name="t", type=DataTypeOption(inner=DataTypeTimestamp())),)),
        ),
        merge=MergeStrategyAppend(),
    )
    assert content_of(event) == (
        "kind: AddPushSource\nsourceName: default\nread:\n  kind: Csv\n  separator: ','\n  header: true\n  schema:\n"
        "    fields:\n    - name: t\n      type:\n        kind: Option\n        inner:\n          kind: Timestamp\n"
        "merge:\n  kind: Append\n"
    )


def test_fields_of_json_are_in_the_same_order_and_text_is_not_escaped():
    event = SetInfo(description="é", keywords=())
    assert manifest_to_json(event) == (
        '{\n  "kind": "MetadataEvent",\n  "version": 1,\n  "content": {\n    "kind": "SetInfo",\n'
        '    "description": "é",\n    "keywords": []\n  }\n}\n'
    )


def test_slice_and_offsets_are_written_as_numbers():
    data = DataSlice(
        logical_hash=HASH, physical_hash=HASH, offset_interval=OffsetInterval(start=0, end=2**64 - 1), size=0
    )
    plain = manifest_to_plain(AddData(new_data=data))["content"]
    assert plain["newData"]["offsetInterval"] == {"start": 0, "end": 18446744073709551615}
    assert plain["newData"]["size"] == 0


def test_empty_lists_and_attributes_are_written_inline():
    event = SetDataSchema(schema=DataSchema(fields=(), extra=ExtraAttributes.of({"b": {}, "a": [None, True, 1.5]})))
    assert content_of(event) == (
        "kind: SetDataSchema\nschema:\n  fields: []\n  extra:\n    a:\n    - null\n    - true\n    - 1.5\n    b: {}\n"
    )
    assert "items: []\n" in content_of(SetAttachments(attachments=AttachmentsEmbedded(items=())))


def test_old_arrow_schema_is_written_in_base64():
    assert content_of(SetDataSchema(raw_arrow_schema=b"\x00\xff")) == "kind: SetDataSchema\nrawArrowSchema: AP8=\n"


def test_snapshot_is_written_like_a_manifest():
    snapshot = DatasetSnapshot(name="a.b", kind=DatasetKind.ROOT, metadata=(SetInfo(description="x"),))
    assert manifest_to_plain(snapshot) == {
        "kind": "DatasetSnapshot",
        "version": 1,
        "content": {"name": "a.b", "kind": "Root", "metadata": [{"kind": "SetInfo", "description": "x"}]},
    }


TEXTS = {
    "x\ny": "|-\n  x\n  y",
    "x\n": "|\n  x",
    " x\ny\n\n": "|2+\n   x\n  y\n",
    "no": "no",
    "true": "'true'",
    "0777": "'0777'",
    "1e3": "'1e3'",
    "1e400": "1e400",
    "2020-01-01": "2020-01-01",
    "a: b": "'a: b'",
    "": "''",
    "it's": "it's",
    "'": "''''",
    "\ttab": '"\\ttab"',
    "\U0001f600": "\U0001f600",
    "x" * 300 + " y": "x" * 300 + " y",
}


@pytest.mark.parametrize(("text", "written"), TEXTS.items(), ids=[ascii(text)[:12] for text in TEXTS])
def test_text_gets_quotes_or_a_block_only_where_it_must(text, written):
    assert content_of(SetInfo(description=text)) == f"kind: SetInfo\ndescription: {written}\n"


def test_more_different_characters_than_stand_ins_are_escaped_and_survive():
    text = "".join(map(chr, range(0xE000, 0xF900))) + "\U0001f600"
    assert '"\\U0001F600"' in content_of(SetInfo(description=text, keywords=("\U0001f600",)))


def test_chain_is_printed_so_that_texts_with_trailing_breaks_survive():
    event = SetInfo(description="x\n\n\n")
    raw = encode_block(event, system_time=NOON, prev_block_hash=HASH, sequence_number=1)
    block = decode_block(raw, expected_hash=None)
    text = "".join(iter_log_yaml([block, block]))
    assert text.count(f"---\n# Block: {block.hash}\nkind: MetadataBlock\n") == 2
    assert [parsed.event for parsed in parse_manifests(text, source_name="log")] == [event, event]


PLAIN = {
    "": None, "~": None, "null": None, "nULL": "nULL", "true": True, "tRUE": "tRUE", "yes": "yes",
    "1": 1, "-1": -1, "+1": 1, "-0": 0, "0x1F": 31, "-0x1F": -31, "0X1F": "0X1F", "0o17": 15, "0b11": 3, "0b2": "0b2",
    "0777": "0777", "-08": "-08", "1_000": "1_000", "1.": 1.0, ".5": 0.5, "-.5": -0.5, "1e3": 1000.0, "e1": "e1",
    "1e": "1e", ".": ".", "1.5.5": "1.5.5", "1e400": "1e400", "1e-400": 0.0, "infinity": "infinity", "nan": "nan",
    "12:30": "12:30", "2020-01-01": "2020-01-01", str(2**128 - 1): 2**128 - 1, str(-(2**127)): -(2**127), "9" * 5000: "9" * 5000,
}  # fmt: skip


@pytest.mark.parametrize(("word", "meaning"), PLAIN.items(), ids=[word[:12] or "nothing" for word in PLAIN])
def test_bare_word_means_what_yaml_1_2_says(word, meaning):
    assert resolve_plain(word) == meaning
    assert type(resolve_plain(word)) is type(meaning)
    assert needs_quotes(word) or meaning == word


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (-0.0, "-0.0"), (1e15, "1000000000000000.0"), (1e16, "1e16"), (1.25e17, "1.25e17"), (1e-4, "0.0001"),
     (1e-5, "0.00001"), (-1.2345e-5, "-0.000012345"), (1e-6, "1e-6"), (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e308")],
)  # fmt: skip
def test_float_is_written_as_the_peers_write_it(value, text):
    assert format_float(value) == text
