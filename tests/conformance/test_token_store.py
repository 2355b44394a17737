"""Access tokens in the store of a home."""

from dataclasses import replace

import pytest

from odf_node.records.access import AccessToken
from odf_node.store import MetadataStore
from support.store_values import (
    LATER,
    NOON,
)


def test_token_is_found_by_the_hash_of_its_secret(store: MetadataStore) -> None:
    token = AccessToken(
        id="t1", secret_hash=b"h" * 32, label="CI", scopes=("push", "push:x"), created_at=NOON, expires_at=LATER
    )
    store.put_token(token)
    assert store.find_token(b"h" * 32) == token
    assert store.find_token(b"x" * 32) is None
    assert store.list_tokens() == (token,)


def test_revoked_token_stays_visible_with_its_first_time(store: MetadataStore) -> None:
    store.put_token(AccessToken(id="t1", secret_hash=b"h" * 32, label="", scopes=(), created_at=NOON))
    assert store.revoke_token("t1", NOON) is True
    assert store.revoke_token("t1", LATER) is True
    assert store.revoke_token("t2", LATER) is False
    assert store.list_tokens()[0].revoked_at == NOON


def test_token_with_a_known_secret_is_our_own_mistake(store: MetadataStore) -> None:
    token = AccessToken(id="t1", secret_hash=b"h" * 32, label="", scopes=(), created_at=NOON)
    store.put_token(token)
    with pytest.raises(ValueError, match="t2"):
        store.put_token(replace(token, id="t2"))


def test_revoked_secret_may_be_granted_again(store: MetadataStore) -> None:
    token = AccessToken(id="t1", secret_hash=b"h" * 32, label="", scopes=(), created_at=NOON)
    store.put_token(token)
    store.revoke_token("t1", LATER)
    store.put_token(replace(token, id="t2"))
    assert store.list_tokens() == (replace(token, id="t2"),)
