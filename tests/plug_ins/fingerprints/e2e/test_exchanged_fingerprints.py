"""A daemon that serves fingerprints, and nodes that read them before they pull, and check them afterwards."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import msgspec
import pytest

import odf_node
from odf_fingerprints.checking import DOCUMENT_FILE
from odf_fingerprints.exchange import MAX_DOCUMENT_BYTES, pack_page, unpack_page
from odf_fingerprints.kept import FILE, crc_of
from odf_fingerprints.signing import decode_signed, sign_fingerprint
from odf_node.cli.run import EXIT_CODES
from odf_node.composition import open_node
from odf_protocol.errors import MalformedError, NotFoundError
from support.command_line import run_command
from support.daemons import Daemon, daemon, wait_until


def fill(home: Path, *, more: str = "") -> None:
    with odf_node.open(home) as opened:
        if more:
            opened.table("open").upsert([{"id": 4, "town": f"Quito {more}"}])
            return
        for name in ("open", "hidden"):
            opened.create_table(name, "id BIGINT, town STRING", key=["id"]).insert(
                [{"id": 1, "town": "Oslo"}, {"id": 2, "town": "Lima"}]
            )


Served = tuple[Path, Daemon]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A node with one published dataset and one that is not, whose daemon has computed the first fingerprints."""
    home = tmp_path_factory.mktemp("served") / "home"
    fill(home)
    run(home, "publish", "--off", "hidden")
    with daemon(home) as running:
        wait_until(lambda: get(running, "open") or None, running.log_file.read_text)
        yield home, running


def run(home: Path, *words: str, code: int = 0) -> str:
    done = run_command(home, *words)
    assert done.returncode == code, done.stderr
    return done.stdout if code in {0, 4} and done.stdout else done.stderr


def get(running: Daemon, name: str, after: int = -1) -> bytes:
    with urlopen(f"{running.url}/_odf/v1/datasets/{name}/fingerprints?after={after}", timeout=60) as answer:
        content: bytes = answer.read()
    return content


def show(home: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(home, "inspect", "fingerprint", *words, "--json"))
    return found


def replace_document(home: Path, sequence: int, **changed: Any) -> None:
    """Have a node state something else of a version, under its own signature."""
    node = open_node(home)
    seed = node.keys.get_or_create_node_key().seed
    node.close()
    with sqlite3.connect(home / "cache" / FILE) as connection:
        asked = "SELECT document, current, block FROM fingerprints WHERE sequence = ?"
        for document, current, block in connection.execute(asked, (sequence,)).fetchall():
            stated = msgspec.structs.replace(decode_signed(document).fingerprint, **changed)
            false = sign_fingerprint(seed, stated)
            values = false, crc_of(false, current), block
            connection.execute("UPDATE fingerprints SET document = ?, crc = ? WHERE block = ?", values)
    connection.close()


def test_fingerprint_of_a_peer_is_read_before_any_row_is_here(served: Served, tmp_path: Path) -> None:
    """FP-12, FP-15."""
    _, running = served
    found = show(tmp_path / "reader", f"{running.url}/open")
    assert found["origin"] == "peer"
    assert found["added"]["rows"] == 2
    assert [each["name"] for each in found["added"]["columns"]][1:] == ["id", "town"]
    assert not [*(tmp_path / "reader").rglob("*.parquet")]
    text = run(tmp_path / "reader", "inspect", "fingerprint", f"{running.url}/open")
    assert "not checked here" in text


def test_fingerprints_of_a_hidden_dataset_are_those_of_none(served: Served) -> None:
    """FP-12."""
    _, running = served
    answers = []
    for name in ("hidden", "nothing"):
        with pytest.raises(HTTPError) as caught:
            get(running, name)
        problem = json.loads(caught.value.read())
        answers.append((caught.value.code, {key: problem[key] for key in problem if key != "instance"}))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


def test_number_that_is_none_is_answered_400(served: Served) -> None:
    """FP-12."""
    with urlopen(f"{served[1].url}/_odf/v1/datasets/open/fingerprints", timeout=60) as answer:
        assert unpack_page(answer.read())
    with (
        pytest.raises(HTTPError, match="400"),
        urlopen(f"{served[1].url}/_odf/v1/datasets/open/fingerprints?after=x", timeout=60),
    ):
        pass


def test_version_is_described_by_the_daemon_and_by_who_pulled_it(served: Served, tmp_path: Path) -> None:
    """FP-11, FP-13: a later version is read ahead, pulled, and what was stated of it is compared with its rows."""
    home, running = served
    reader = tmp_path / "reader"
    run(reader, "pull", f"{running.url}/open")
    before = show(reader, "open")
    assert before["origin"] == "computed here"

    fill(home, more="one")
    wait_until(lambda: get(running, "open", before["version"]) or None, running.log_file.read_text)
    ahead = show(reader, "open", "--remote")
    assert (ahead["version"], ahead["origin"]) == (before["version"] + 1, "peer")
    assert ahead["current"]["rows"] == before["current"]["rows"] + 1

    run(reader, "pull", "open")
    pulled = show(reader, "open")
    assert pulled["origin"] == "computed here"
    assert pulled["added"] == ahead["added"]
    checked = show(reader, "open", "--check")
    assert (checked["checked"], checked["false"]) == (2, [])


def test_fingerprint_that_the_rows_do_not_give_is_named_and_kept(served: Served, tmp_path: Path) -> None:
    """FP-13."""
    home, running = served
    reader = tmp_path / "reader"
    run(reader, "pull", f"{running.url}/open")
    signed = decode_signed(unpack_page(get(running, "open"))[0])
    first = signed.fingerprint
    column = msgspec.structs.replace(first.added.columns[1], distinct=1)
    added = msgspec.structs.replace(first.added, columns=(first.added.columns[0], column, *first.added.columns[2:]))
    replace_document(home, first.sequence, added=added)
    try:
        show(reader, "open", "--remote")
        answer = json.loads(run(reader, "inspect", "fingerprint", "open", "--check", "--json", code=4))
        (false,) = answer["false"]
        assert (false["version"], false["signer"]) == (first.sequence, str(signed.signer))
        assert false["difference"] == "added: column id, distinct: stated 1, found 2"
        assert "false" in run(reader, "inspect", "audit")
        (reader / "cache" / FILE).unlink()
        (report,) = json.loads(run(reader, "inspect", "refusals", "--json"))
        assert (report["rule"], report["block"]) == ("FP-13 same-figures", first.sequence)
        evidence = Path(report["folder"], DOCUMENT_FILE).read_bytes()
        assert decode_signed(evidence).fingerprint.added == added
        assert show(reader, "open")["origin"] == "computed here"
    finally:
        replace_document(home, first.sequence, added=first.added)


def test_check_goes_on_over_versions_whose_rows_are_absent(served: Served, tmp_path: Path) -> None:
    """FP-13: what is here is compared, and an error says that nothing is."""
    home, running = served
    fill(home, more="of a partial copy")
    newest = show(home, "open")["version"]
    wait_until(lambda: get(running, "open", newest - 1) or None, running.log_file.read_text)
    reader = tmp_path / "reader"
    run(reader, "pull", f"{running.url}/open", "--metadata-only")
    stated = unpack_page(get(running, "open"))
    show(reader, "open", "--remote")
    assert "lacks" in run(reader, "inspect", "fingerprint", "open", "--check", code=EXIT_CODES[NotFoundError])

    run(reader, "tail", "open", "-n", "1")
    found = show(reader, "open", "--check")
    assert (found["checked"], found["absent"], found["false"]) == (1, len(stated) - 1, [])

    newest_stated = decode_signed(stated[-1]).fingerprint
    replace_document(home, newest, added=msgspec.structs.replace(newest_stated.added, days=b""))
    try:
        show(reader, "open", "--remote")
        answer = json.loads(run(reader, "inspect", "fingerprint", "open", "--check", "--json", code=4))
        assert [each["version"] for each in answer["false"]] == [newest]
        assert answer["absent"] == len(stated) - 1
    finally:
        replace_document(home, newest, added=newest_stated.added)


def test_fingerprint_of_another_history_is_rejected(served: Served, tmp_path: Path) -> None:
    """FP-13."""
    home, running = served
    reader = tmp_path / "reader"
    run(reader, "pull", f"{running.url}/open")
    first = decode_signed(unpack_page(get(running, "open"))[0]).fingerprint
    replace_document(home, first.sequence, block="f1620" + "0d" * 32)
    try:
        assert "FP-13 same-history" in run(reader, "inspect", "fingerprint", "open", "--remote", code=4)
    finally:
        replace_document(home, first.sequence, block=first.block)


def test_fingerprint_of_another_dataset_is_rejected(served: Served, tmp_path: Path) -> None:
    """FP-12."""
    home, running = served
    first = decode_signed(unpack_page(get(running, "open"))[0]).fingerprint
    reader = tmp_path / "reader"
    run(reader, "pull", f"{running.url}/open")
    replace_document(home, first.sequence, dataset="did:odf:fed01" + "ab" * 32)
    try:
        assert "FP-12 order" in run(reader, "inspect", "fingerprint", "open", "--remote", code=4)
    finally:
        replace_document(home, first.sequence, dataset=first.dataset)


def test_two_versions_stand_side_by_side_with_measures(served: Served) -> None:
    """FP-15, FP-10."""
    home, _ = served
    fill(home, more="two")
    newest = show(home, "open")["version"]
    found = show(home, "open", "3", str(newest))
    assert found["compared"] == "current"
    assert found["drift"]["id"]["kolmogorovSmirnov"] > 0
    assert found["drift"]["town"]["kolmogorovSmirnov"] is None
    text = run(home, "inspect", "fingerprint", "open", "3", str(newest))
    assert "PSI" in text
    assert "rows after versions 3 and" in text


def test_version_without_rows_is_named_with_the_nearest(served: Served) -> None:
    """FP-15."""
    assert "the nearest version with rows is 3" in run(served[0], "inspect", "fingerprint", "open", "2", code=2)
    assert "no node that it was pulled from" in run(served[0], "inspect", "fingerprint", "open", "--remote", code=2)


def test_page_that_ends_within_a_document_is_rejected() -> None:
    """FP-12."""
    page = pack_page([b"one", b"more"])
    assert unpack_page(page) == [b"one", b"more"]
    too_large = (MAX_DOCUMENT_BYTES + 1).to_bytes(4, "big")
    for wrong in (page[:-1], page[:2], b"\x00" * 4, too_large + b"x", page + b"\xff"):
        with pytest.raises(MalformedError):
            unpack_page(wrong)
