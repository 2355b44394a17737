"""The published JSON Schema is the one that the declarations give, and says what the reader does."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given

from odf_protocol.manifest import manifest_to_plain
from odf_protocol.manifest.json_schema import manifest_schema
from support.events import EVENT_KIND, events
from support.json_schema import is_valid

ROOT = Path(__file__).parents[2]
SCHEMA = manifest_schema()
MANIFESTS = sorted((ROOT / "tests" / "data" / "kamu" / "manifests").glob("*.yaml"))


def is_manifest(value) -> bool:
    return is_valid(value, SCHEMA, SCHEMA)


def test_published_schema_is_in_step_with_the_declarations():
    assert json.loads((ROOT / "spec" / "schemas" / "manifest.schema.json").read_text()) == manifest_schema()


def test_every_event_is_defined():
    assert {member.__name__ for member in EVENT_KIND.members} <= set(SCHEMA["$defs"])


@given(events())
def test_every_event_that_is_written_follows_the_schema(event):
    assert is_manifest(manifest_to_plain(event))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_of_users_follow_the_schema(path):
    assert is_manifest(yaml.safe_load(path.read_text()))


def event(**content) -> dict:
    return {"kind": "MetadataEvent", "version": 1, "content": content}


def test_spellings_short_forms_and_null_are_accepted():
    assert is_manifest({"kind": "MetadataEvent", "version": 1, "content": "disablePollingSource"})
    assert is_manifest(event(kind="setinfo", description=None))
    assert is_manifest(event(kind="AddPushSource", sourceName="a", read="ndjson", merge={"kind": "append"}))


@pytest.mark.parametrize(
    "manifest",
    [
        event(kind="SetInfo", keyword=["a"]),
        event(kind="SETINFO"),
        event(kind="AddPushSource", sourceName="a", read="NdJson"),
        event(kind="AddPushSource", sourceName="a", read="NdJson", merge="Ledger"),
        event(kind="AddData", prevOffset=-1),
        event(kind="AddData", prevOffset=2**64),
        {**event(kind="SetInfo"), "version": 2},
        {**event(kind="SetInfo"), "extra": 1},
    ],
    ids=["field", "spelling", "missing", "short-form", "negative", "too-large", "version", "envelope"],
)
def test_mistakes_that_the_reader_rejects_are_rejected(manifest):
    assert not is_manifest(manifest)
