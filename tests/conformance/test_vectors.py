"""The vectors of spec/vectors hold, and are those that the unit tests speak of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from odf_protocol.events import Event
from odf_protocol.events.declaration import UnionKind, declaration_of, union_kind_of
from run_vectors import iter_checks, main
from support.write_vectors import VECTORS, documents, text_of

FILES = sorted(VECTORS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_vector_holds(path: Path) -> None:
    checks = list(iter_checks(json.loads(path.read_text())))
    assert checks
    assert [(check.comment, failure) for check in checks if (failure := check.find_failure())] == []


def test_files_are_those_that_the_tests_make() -> None:
    """Otherwise run tests/support/write_vectors.py."""
    for name, document in documents().items():
        assert (VECTORS / name).read_text() == text_of(document)


def test_accepted_blocks_have_every_table_of_the_schema() -> None:
    blocks = json.loads((VECTORS / "blocks.json").read_text())["accepted"]
    text = json.dumps([case["block"] for case in blocks])
    wanted = {union_kind_of(Event).name_of(member) for member in union_kind_of(Event).members}
    pending, seen = list(union_kind_of(Event).members), set()
    while pending:
        table = pending.pop()
        if table in seen:
            continue
        seen.add(table)
        for field in declaration_of(table).fields:
            if isinstance(field.kind, UnionKind):
                wanted |= {field.kind.name_of(member) for member in field.kind.members}
                pending += field.kind.members
    assert {name for name in wanted if f'"kind": "{name}"' not in text} == set()


def test_program_prints_how_many_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VECTORS / "timestamps.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" passed, 0 failed")


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("blocks", lambda document: document["accepted"][0].update(hash=document["accepted"][1]["hash"])),
        ("blocks", lambda document: document["accepted"][0]["block"].update(sequenceNumber=1)),
        ("blocks", lambda document: document["rejected"][0].update(bytes_hex=document["accepted"][0]["bytes_hex"])),
        ("blocks", lambda document: document["rejected"][0].update(refusal="unsupported")),
        ("chains", lambda document: document["cases"][0].update(rejected_by="CHAIN-1")),
        ("chains", lambda document: document["cases"][-1].update(reported_by="CHAIN-1")),
        ("identifiers", lambda document: document["multihashes"][0].update(short="00000000")),
        ("identifiers", lambda document: document["rejected"][0].update(text=document["multihashes"][0]["base16"])),
        ("timestamps", lambda document: document["accepted"][0].update(seconds=0)),
        ("names", lambda document: document["accepted"][0].update(type="RemoteAlias")),
        ("names", lambda document: document["patterns"][0].update(matches=False)),
    ],
)
def test_wrong_vector_fails(name: str, spoil: "object", tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((VECTORS / f"{name}.json").read_text())
    assert callable(spoil)
    spoil(document)
    path = tmp_path / "spoilt.json"
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith(" passed, 1 failed")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other"}', '{"kind": "blocks"}'])
def test_file_of_another_form_fails(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert main([str(path), str(tmp_path / "missing.json")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 2 failed"


def test_collection_of_the_reference_implementation_is_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = json.loads((VECTORS / "blocks.json").read_text())["accepted"][:2]
    collection = {
        "metadata_blocks": [
            {
                "name": case["comment"],
                "block": case["block"],
                "encodings": [
                    {
                        "version": case["version"],
                        "block_hash": case["hash"],
                        "size": len(case["bytes_hex"]) // 2,
                        "bytes_hex": case["bytes_hex"],
                    }
                ],
            }
            for case in blocks
        ],
        "logical_hashes": {
            "golden": [],
            "derived": [
                {
                    "what": "array: i32 [1,2,3]",
                    "sha3_256": "95d11399ecaed3721501c76f154c3430744d178831b53896cb8f54fed36fb321",
                },
                {"what": "array: unheard of", "sha3_256": "00"},
            ],
        },
    }
    path = tmp_path / "reference.json"
    path.write_text(json.dumps(collection))
    assert main([str(path)]) == 1
    output = capsys.readouterr().out.splitlines()
    assert output[-1] == "3 passed, 1 failed"
    assert "unheard of" in output[0]


def test_program_runs_by_itself() -> None:
    command = [sys.executable, str(Path(__file__).parents[1] / "run_vectors.py"), str(VECTORS / "names.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(" passed, 0 failed\n")
    assert subprocess.run(command[:2], capture_output=True, check=False).returncode == 2
