"""Our manifests say what another implementation says, to the letter: its printed chains, its snapshots, its DDL."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import DataSchema, SetDataSchema, SetTransform
from odf_protocol.events.declaration import TableKind
from odf_protocol.manifest import (
    iter_log_yaml,
    manifest_to_json,
    manifest_to_yaml,
    parse_manifests,
)
from odf_protocol.manifest.writing import to_plain
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import find_slice_incompatibility
from odf_protocol.schema_ddl import parse_ddl
from support.manifests import parse_manifest

KAMU = Path(__file__).parents[1] / "data" / "kamu"
LOGS = sorted((KAMU / "logs").glob("*.yaml"))
MANIFESTS = sorted((KAMU / "manifests").glob("*.yaml"))
DDL = json.loads((KAMU / "ddl" / "columns.json").read_text())

# It takes these and we do not: names without letters, comments, table constraints.
DDL_WE_REJECT = ("@a INT", '""  INT', "a  INT /* c */", "primary key (a)")


def printed_blocks(path: Path) -> dict[str, str]:
    """Documents of a printed chain by the hash in their comment, without the two blank lines that follow each."""
    parts = re.split(r"(?m)^---\n# Block: (\w+)\n", path.read_text())
    return {parts[i]: parts[i + 1][:-2] for i in range(1, len(parts), 2)}


def read_blocks(path: Path):
    folder = KAMU / "datasets" / path.stem / "blocks"
    for name in printed_blocks(path):
        yield decode_block((folder / name).read_bytes(), expected_hash=Multihash.parse(name))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_decoded_blocks_are_printed_to_the_letter(path):
    documents = printed_blocks(path)
    for block in read_blocks(path):
        assert manifest_to_yaml(block) == documents[str(block.hash)]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_whole_chains_are_printed_to_the_letter(path):
    assert "".join(iter_log_yaml(read_blocks(path))) == path.read_text()


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_printed_chains_read_back_as_the_blocks(path):
    parsed = parse_manifests(path.read_text(), source_name=path.name)
    decoded = list(read_blocks(path))
    assert [block.event for block in parsed] == [block.event for block in decoded]
    assert [block.prev_block_hash for block in parsed] == [block.prev_block_hash for block in decoded]
    assert parse_manifest(manifest_to_json(decoded[0]), source_name="x.json") == parsed[0]


@pytest.mark.parametrize("name", ["texts", "numbers"])
def test_odd_texts_are_quoted_to_the_letter(name):
    for document in printed_blocks(KAMU / "quoting" / f"{name}.yaml").values():
        assert manifest_to_yaml(parse_manifest(document, source_name=name)) == document


@pytest.mark.parametrize("name", ["texts", "numbers"])
def test_odd_texts_are_read_as_they_were_given(name):
    keywords = tuple(json.loads((KAMU / "quoting" / f"{name}.json").read_text()))
    documents = printed_blocks(KAMU / "quoting" / f"{name}.yaml").values()
    events = [parse_manifest(document, source_name=name).event for document in documents]
    assert any(getattr(event, "keywords", None) == keywords for event in events)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_snapshots_become_the_events_of_the_chain(path):
    snapshot = parse_manifest(path.read_text(), source_name=path.name)
    chain = [block.event for block in reversed(list(read_blocks(KAMU / "logs" / f"{snapshot.name}.yaml")))]
    chain = chain[1 : 1 + len(snapshot.metadata)]
    if isinstance(chain[-1] if chain else None, SetTransform):
        # Names are resolved to identifiers when the dataset is made; the rest is already as it will be.
        (ours,), (theirs,) = snapshot.metadata, chain
        assert ours.transform == theirs.transform
        assert [given.alias for given in ours.inputs] == [given.alias for given in theirs.inputs]
    else:
        assert list(snapshot.metadata) == chain


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_snapshots_survive_yaml_and_json(path):
    snapshot = parse_manifest(path.read_bytes(), source_name=path.name)
    assert parse_manifest(manifest_to_yaml(snapshot), source_name="x.yaml") == snapshot
    assert parse_manifest(manifest_to_json(snapshot), source_name="x.json") == snapshot


@pytest.mark.parametrize("case", DDL, ids=lambda case: ", ".join(case["ddlSchema"]) or "nothing")
def test_ddl_means_the_same_columns_or_is_rejected_too(case):
    if case["fields"] is None or case["ddlSchema"][0] in DDL_WE_REJECT:
        with pytest.raises((MalformedError, UnsupportedError)):
            parse_ddl(case["ddlSchema"])
    else:
        assert to_plain(TableKind(DataSchema), parse_ddl(case["ddlSchema"])) == {"fields": case["fields"]}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_slices_have_the_schema_that_the_chain_states(path):
    stated = [block.event.schema for block in read_blocks(path) if isinstance(block.event, SetDataSchema)]
    for slice_path in (KAMU / "datasets" / path.stem / "data").glob("*"):
        found = data_schema_of(pq.read_schema(slice_path))
        assert find_slice_incompatibility(stated[0], found) is None
        assert found == stated[0]
