"""What the vectors of NAME-1 to NAME-7 cannot say."""

import pytest

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.names import (
    MAX_REFERENCE_CHARACTERS,
    AccountName,
    DatasetAlias,
    DatasetName,
    DatasetPattern,
    DatasetUrl,
    RemoteAlias,
    parse_any_ref,
    parse_dataset_ref,
)


def test_names_ignore_case_and_keep_it() -> None:
    """NAME-3."""
    assert DatasetName("Ab") == DatasetName("aB")
    assert hash(DatasetName("Ab")) == hash(DatasetName("aB"))
    assert str(DatasetName("Ab")) == "Ab"
    assert sorted([DatasetName("b"), DatasetName("A")])[0].text == "A"


def test_names_of_different_things_are_different() -> None:
    assert DatasetName("a") != AccountName("a")


@pytest.mark.parametrize("text", ["a", "x/a", "r/x/a", "r/did:odf:fed01" + "ab" * 32, "https://a/b"])
def test_reference_is_written_as_it_was_read(text: str) -> None:
    assert str(parse_any_ref(text, is_repo=lambda _repo: False)) == text


def test_local_reference_is_an_id_or_an_alias() -> None:
    """NAME-5."""
    assert isinstance(parse_dataset_ref("did:odf:fed01" + "ab" * 32), DatasetId)
    assert parse_dataset_ref("a/b") == DatasetAlias(AccountName("a"), DatasetName("b"))
    with pytest.raises(MalformedError):
        parse_dataset_ref("r/a/b")


def test_schemes_are_given_from_the_outside_in() -> None:
    """NAME-6."""
    assert DatasetUrl("ODF+Https://e.org").schemes == ("odf", "https")


def test_long_reference_is_rejected() -> None:
    with pytest.raises(MalformedError, match=str(MAX_REFERENCE_CHARACTERS)):
        parse_any_ref("https://" + "a" * MAX_REFERENCE_CHARACTERS, is_repo=lambda _repo: False)


def test_alias_in_a_repository_needs_two_parts() -> None:
    with pytest.raises(MalformedError, match="RemoteAlias"):
        RemoteAlias.parse("a")


@pytest.mark.parametrize("text", ["", "a/b/c", "a b", "%" * 101, "a/"])
def test_wrong_pattern_is_rejected(text: str) -> None:
    """NAME-7."""
    with pytest.raises(MalformedError, match="DatasetPattern"):
        DatasetPattern.parse(text)


def test_pattern_of_many_wildcards_is_matched_at_once() -> None:
    pattern = DatasetPattern.parse("a%" * 50)
    assert not pattern.matches(DatasetAlias.parse("a" * 49))
    assert pattern.matches(DatasetAlias.parse("a" * 50))
    assert str(pattern) == "a%" * 50
