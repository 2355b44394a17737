"""``odf-node key`` as a user runs it: rotation, a recovery key on a stick, a theft, and the reader who follows."""

import json
from pathlib import Path

import pytest

from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.cli.main import main

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - {kind: SetInfo, description: Where people live}
"""


@pytest.fixture(autouse=True)
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))


def test_keys_are_changed_lost_and_taken_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(home: str, *words: str | Path, code: int = 0) -> str:
        assert main(["--home", str(tmp_path / home), *map(str, words)]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    manifest, stick, place = tmp_path / "cities.yaml", tmp_path / "stick.pem", tmp_path / "shared" / "cities"
    manifest.write_text(MANIFEST)
    place.parent.mkdir()
    run("owner", "add", manifest)
    assert "no recovery key" in run(
        "owner", "key", "recover", "cities", "--with", _made(tmp_path), "--stolen-from", "1", code=2
    )
    assert "stick.pem" in run("owner", "key", "prepare", "cities", "--to", stick)
    assert "exists already" in run("owner", "key", "prepare", "cities", "--to", stick, code=2)
    assert "handed the dataset to did:key:" in run("owner", "key", "rotate", "cities")
    run("owner", "export", "cities", "--to", place.parent)
    run("reader", "pull", place.as_uri())

    assert "took the dataset back" in run(
        "owner", "key", "recover", "cities", "--with", stick, "--stolen-from", "1", "--next", tmp_path / "next.pem"
    )
    run("owner", "export", "cities", "--to", place.parent)
    run("reader", "pull", place.as_uri())

    owners, readers = (json.loads(run(home, "key", "show", "cities", "-o", "json")) for home in ("owner", "reader"))
    assert [event["change"] for event in owners["events"]] == ["recovery-key", "rotation", "recovery"]
    assert owners["events"] == readers["events"]
    assert [block["block"] for block in readers["stolen"][0]["blocks"]] == [1]
    assert [key["isHere"] for key in owners["keys"]] == [True, True, True]
    assert not any(key["isHere"] for key in readers["keys"])
    assert "signed by a stolen key, kept by the owner" in run("reader", "key", "show", "cities")
    for words in (("trust", "cities"), ("inspect", "trust", "cities")):
        assert "WARNING     blocks 1 to 1 were signed by a key" in run("reader", *words)
    run("reader", "verify", "cities")
    run("owner", "verify", "cities")
    assert "recovery" in run("owner", "inspect", "audit")


def _made(folder: Path) -> Path:
    """A key file of the right form that nobody ever named."""
    from odf_node.adapters.key_files import encode_pem
    from odf_node.ports.keys import PrivateKey

    path = folder / "unnamed.pem"
    path.write_bytes(encode_pem(PrivateKey(b"\x09" * 32)))
    path.chmod(0o600)
    return path
