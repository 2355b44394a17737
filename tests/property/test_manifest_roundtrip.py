"""What is written reads back as the same object, whatever the object: YAML and JSON, all 13 events."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_protocol.events import AddData, DatasetKind, ExtraAttributes, SetInfo
from odf_protocol.manifest import (
    BlockManifest,
    DatasetSnapshot,
    Manifest,
    ManifestError,
    manifest_to_json,
    manifest_to_yaml,
    parse_manifests,
)
from odf_protocol.manifest.nodes import format_float, needs_quotes, resolve_plain
from support.events import EVENT_KIND, events, hashes, tables, texts, timestamps
from support.manifests import parse_manifest

blocks = st.builds(
    BlockManifest,
    version=st.sampled_from([2, 3]),
    system_time=timestamps,
    prev_block_hash=st.none() | hashes,
    sequence_number=st.integers(0, 2**64 - 1),
    event=events(),
)


@pytest.mark.parametrize("member", EVENT_KIND.members, ids=lambda member: member.__name__)
def test_every_event_survives_yaml_and_json(member):
    @settings(deadline=None)
    @given(tables(member))
    def survives(event):
        assert parse_manifest(manifest_to_yaml(event), source_name="event.yaml") == event
        assert parse_manifest(manifest_to_json(event), source_name="event.json") == event

    survives()


@settings(deadline=None)
@given(blocks)
def test_every_block_survives_yaml_and_json(block):
    assert parse_manifest(manifest_to_yaml(block), source_name="block.yaml") == block
    assert parse_manifest(manifest_to_json(block), source_name="block.json") == block


@settings(deadline=None)
@given(st.lists(blocks, max_size=3))
def test_blocks_joined_by_document_marks_stay_apart(several):
    text = "".join(f"---\n{manifest_to_yaml(block)}" for block in several)
    assert parse_manifests(text, source_name="log.yaml") == tuple(several)


@given(texts)
def test_every_text_survives_as_a_key_and_as_a_value(text):
    event = AddData(extra=ExtraAttributes.of({text: text}))
    assert parse_manifest(manifest_to_yaml(event), source_name="x") == event
    info = SetInfo(description=text, keywords=(text,))
    assert parse_manifest(manifest_to_yaml(info), source_name="x") == info


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_written_so_that_it_reads_back(value):
    assert resolve_plain(format_float(value)) == value


@given(st.text(max_size=30))
def test_a_text_that_needs_no_quotes_means_itself(text):
    assert needs_quotes(text) or resolve_plain(text) == text


@settings(deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_input_is_read_or_rejected_with_a_position(text):
    for name in ("x.yaml", "x.json"):
        found: tuple[Manifest, ...] | ManifestError
        try:
            found = parse_manifests(text, source_name=name)
        except ManifestError as error:
            found = error
        if isinstance(found, ManifestError):
            assert found.line >= 1
            assert found.column >= 1
            assert str(found).startswith(f"{name}:{found.line}:{found.column}: ")
        else:
            assert found == ()  # blanks and comments alone


@settings(deadline=None)
@given(events(), st.data())
def test_a_damaged_manifest_is_read_or_rejected_but_never_crashes(event, data):
    text = manifest_to_yaml(event)
    position = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 5))
    damaged = text[:position] + data.draw(st.text(max_size=3)) + text[position + length :]
    with contextlib.suppress(ManifestError):
        parse_manifests(damaged, source_name="x")


@settings(deadline=None)
@given(st.lists(tables(EVENT_KIND.members[7]), max_size=3))
def test_a_snapshot_of_infos_survives(infos):
    snapshot = DatasetSnapshot(name="a.b", kind=DatasetKind.ROOT, metadata=tuple(infos))
    assert parse_manifest(manifest_to_yaml(snapshot), source_name="x") == snapshot
    assert parse_manifest(manifest_to_json(snapshot), source_name="x.json") == snapshot
