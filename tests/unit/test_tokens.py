"""Tokens: shown once, kept as a hash, limited to datasets, revoked for good."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.tokens import PREFIX
from odf_node.home_folder import HomeFolder
from odf_node.http.callers import secret_hash_of
from odf_protocol.timestamp import Timestamp
from support.signing import NOON
from support.store_values import creation, dataset_id


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(HomeFolder(tmp_path / "home"), FixedClock(NOON))
    node.store.commit(creation(1, name="cities"))
    yield node
    node.close()


def test_secret_is_found_by_its_hash_and_kept_nowhere(node: Node) -> None:
    token, secret = node.tokens.create("the publisher", datasets=[], expires_at=None)

    assert secret.startswith(PREFIX)
    assert node.store.find_token(secret_hash_of(secret)) == token
    kept = b"".join(path.read_bytes() for path in node.home.folder.path.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert secret.removeprefix(PREFIX).encode() not in kept


def test_list_tells_what_each_token_still_opens(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    now, later = Timestamp(NOON.seconds + 1), Timestamp(NOON.seconds + 2)
    for label, expires_at in (("for ever", None), ("until later", later), ("until now", now), ("ended", None)):
        token, _ = node.tokens.create(label, datasets=[], expires_at=expires_at)
    node.tokens.revoke(token.id)

    assert main(["token", "list", "-o", "json", "--home", str(node.home.folder.path), "--system-time", str(now)]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert {row["label"]: row["state"] for row in listed} == {
        "for ever": "valid",
        "until later": "valid",
        "until now": "expired",
        "ended": "revoked",
    }


def test_table_calls_datasets_by_their_names(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.tokens.create("one", datasets=["cities"], reads=["cities"], expires_at=None)
    node.tokens.create("all", datasets=[], expires_at=None)
    assert main(["token", "list", "--home", str(node.home.folder.path)]) == 0
    _, _, one, every = capsys.readouterr().out.splitlines()
    assert "  push cities, read cities  " in one
    assert "  push  " in every


@pytest.mark.parametrize("seconds", [-1, 0])
def test_token_that_would_never_be_valid_is_not_made(node: Node, seconds: int) -> None:
    with pytest.raises(UsageError, match="would never be valid"):
        node.tokens.create("late", datasets=[], expires_at=Timestamp(NOON.seconds + seconds))
    assert node.tokens.list_tokens() == ()


def test_no_two_tokens_are_alike(node: Node) -> None:
    made = [node.tokens.create("same", datasets=[], expires_at=None) for _ in range(20)]

    assert len({secret for _, secret in made}) == len({token.id for token, _ in made}) == 20


def test_scopes_name_identities_not_names(node: Node) -> None:
    anything, _ = node.tokens.create("any", datasets=[], expires_at=None)
    one, _ = node.tokens.create("one", datasets=["CITIES", str(dataset_id(7))], expires_at=None)

    assert anything.scopes == ("push",)
    assert one.scopes == (f"push:{dataset_id(1)}", f"push:{dataset_id(7)}")


def test_token_for_a_dataset_that_is_not_here_is_not_made(node: Node) -> None:
    with pytest.raises(UnknownDatasetError, match="did you mean 'cities'"):
        node.tokens.create("typo", datasets=["citees"], expires_at=None)

    assert node.tokens.list_tokens() == ()


def test_end_and_revocation_are_shown(node: Node) -> None:
    end = Timestamp(NOON.seconds + 60)
    token, secret = node.tokens.create("short", datasets=[], expires_at=end)
    node.tokens.revoke(token.id)

    (listed,) = node.tokens.list_tokens()
    assert (listed.expires_at, listed.revoked_at) == (end, NOON)
    found = node.store.find_token(secret_hash_of(secret))
    assert found is not None
    assert found.revoked_at == NOON


def test_revoking_what_is_not_there_is_an_error(node: Node) -> None:
    with pytest.raises(UnknownDatasetError, match="there is no token abcd"):
        node.tokens.revoke("abcd")
