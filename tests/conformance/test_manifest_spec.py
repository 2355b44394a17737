"""The examples of the manifests' specification are manifests, and its example of an error is what the reader says."""

import re
from pathlib import Path

import pytest

from odf_protocol.events import DatasetKind, SetTransform
from odf_protocol.manifest import DatasetSnapshot, ManifestError, limits, parse_manifests

SPEC = (Path(__file__).parents[2] / "spec" / "manifests.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", SPEC, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_is_a_manifest(text):
    assert len(parse_manifests(text, source_name="example.yaml")) == 1


def test_examples_cover_both_kinds_of_datasets():
    manifests = [parse_manifests(text, source_name="x")[0] for text in EXAMPLES]
    snapshots = [manifest for manifest in manifests if isinstance(manifest, DatasetSnapshot)]
    assert {snapshot.kind for snapshot in snapshots} == set(DatasetKind)
    assert any(isinstance(event, SetTransform) for snapshot in snapshots for event in snapshot.metadata)


def test_example_of_an_error_is_what_the_reader_says():
    text = EXAMPLES[1].replace("NdJson", "NdJsn")
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, source_name="orders.yaml")
    assert f"```text\n{caught.value}\n```" in SPEC


def test_limits_are_those_of_the_program():
    assert limits.MAX_TEXT_BYTES == 16 * 2**20
    assert limits.MAX_SCALAR_CHARACTERS == 4 * 2**20
    for number in (limits.MAX_DEPTH, limits.MAX_NODES, limits.MAX_DOCUMENTS, limits.MAX_EVENTS):
        assert f"{number:,}" in SPEC
