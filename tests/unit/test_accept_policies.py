"""Policies as people write them: what a file means, and where its mistakes are."""

from pathlib import Path

import pytest

from odf_node.adapters.policy_file import WatchedPolicies, read_policies
from odf_protocol.accept_policies import NO_POLICIES
from odf_protocol.accept_policy_text import parse_policies
from odf_protocol.errors import MalformedError
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.policy import Policy
from support.signing import NEW_KEY, NODE_KEY, OTHER_KEY, dataset_of, did_key_of

ALICE, BOB = did_key_of(NODE_KEY), did_key_of(NEW_KEY)
CITIES = dataset_of(OTHER_KEY)
TEXT = f"""\
kind: AcceptPolicies
version: 1
auditors:
  alice: {ALICE}
  bob: {BOB}
rules:
  - datasets: [covid.%, {CITIES}]
    peers: ["https://agency.example/", "http://node.example:8080"]
    accept: attested
    threshold: 2
  - peers: ["push:"]
    accept: re-executed
    firstContact: refuse
default:
  accept: integrity
"""


def rule_for(name: str, url: str, key: bytes = NODE_KEY) -> str:
    return parse_policies(TEXT, source_name="p.yaml").find_rule(name, dataset_of(key), url).name


@pytest.mark.parametrize(
    ("name", "url", "key", "expected"),
    [
        ("covid.cases", "https://agency.example/covid.cases", NODE_KEY, "rule 1 of p.yaml (line 7)"),
        ("COVID.cases", "odf+http://node.example:8080/x", NODE_KEY, "rule 1 of p.yaml (line 7)"),
        ("other", "https://agency.example/other", OTHER_KEY, "rule 1 of p.yaml (line 7)"),
        ("covid.cases", "https://agency.example.evil/covid.cases", NODE_KEY, "the default of p.yaml (line 15)"),
        ("covid.cases", "http://node.example:80801/covid.cases", NODE_KEY, "the default of p.yaml (line 15)"),
        ("mycovid.cases", "https://agency.example/x", NODE_KEY, "the default of p.yaml (line 15)"),
        ("covid.cases", "push:token-1", NODE_KEY, "rule 2 of p.yaml (line 11)"),
    ],
)
def test_first_rule_that_matches_dataset_and_peer_is_in_force(name: str, url: str, key: bytes, expected: str) -> None:
    assert rule_for(name, url, key) == expected


def test_rule_of_auditors_has_all_of_them_where_it_names_none() -> None:
    rule = parse_policies(TEXT, source_name="p.yaml").rules[0].rule
    assert (rule.policy, rule.threshold, [a.key for a in rule.auditors]) == (Policy.ATTESTED, 2, [ALICE, BOB])


@pytest.mark.parametrize(
    ("old", "new", "place", "expected"),
    [
        ("threshold: 2", "threshold: 3", "p.yaml:10:16", "a number from 1 to 2"),
        ("threshold: 2", "threshold: 0", "p.yaml:10:16", "a number from 1 to 2"),
        ("    threshold: 2\n", "", "p.yaml:7:5", "threshold"),
        ("accept: attested", "accept: atested", "p.yaml:9:13", "did you mean 'attested'"),
        ("accept: integrity", "accept: integrity\n  threshold: 1", "p.yaml:16:14", "accept: attested only"),
        (f"bob: {BOB}", f"bob: {ALICE}", "p.yaml:5:8", "a node of its own"),
        (f"bob: {BOB}", "bob: did:key:zzz", "p.yaml:5:8", "a did:key"),
        ("firstContact: refuse", "firstcontact: refuse", "p.yaml:13:5", "did you mean 'firstContact'"),
        ("firstContact: refuse", "firstContact: no", "p.yaml:13:19", "allow or reject"),
        ('["push:"]', "[]", "p.yaml:11:12", "at least one entry"),
        ('["push:"]', f"[{ALICE}]", "p.yaml:11:13", "an address"),
        ("threshold: 2", "threshold: 2\n    engines: [spark]", "p.yaml:11:14", "accept: re-executed only"),
        ("firstContact: refuse", "engines: []", "p.yaml:13:14", "at least one entry"),
        ("firstContact: refuse", "engines: [f1620zz]", "p.yaml:13:15", "the digest of an engine"),
        ("version: 1", "version: 2", "p.yaml:2:10", "expected 1"),
        ("kind: AcceptPolicies", "kind: Manifest", "p.yaml:1:7", "AcceptPolicies"),
    ],
)
def test_mistake_is_answered_with_its_place_and_what_would_be_right(
    old: str, new: str, place: str, expected: str
) -> None:
    assert old in TEXT
    with pytest.raises(ManifestError) as caught:
        parse_policies(TEXT.replace(old, new), source_name="p.yaml")
    assert str(caught.value).startswith(place + ":"), caught.value
    assert expected in str(caught.value)


def test_rule_that_names_an_unknown_auditor_is_rejected_with_the_nearest() -> None:
    text = TEXT.replace("threshold: 2", "threshold: 1\n    auditors: [alicia]")
    with pytest.raises(ManifestError, match="did you mean 'alice'"):
        parse_policies(text, source_name="p.yaml")


def test_file_with_two_documents_is_rejected() -> None:
    with pytest.raises(ManifestError, match="one document"):
        parse_policies(f"{TEXT}---\n{TEXT}", source_name="p.yaml")


def test_engines_that_count_are_names_in_any_case_and_digests() -> None:
    """POLICY-10."""
    digest = f"f1620{'ab' * 32}"
    text = TEXT.replace("firstContact: refuse", f"engines: [Spark, {digest}]")
    assert parse_policies(text, source_name="p.yaml").rules[1].rule.engines == ("spark", digest)
    assert parse_policies(TEXT, source_name="p.yaml").rules[1].rule.engines == ()


def test_link_that_leads_nowhere_is_a_mistake_and_not_the_default(tmp_path: Path) -> None:
    """What stands behind a link may be away for a moment; the operator's rules are then not those of nobody."""
    path, target = tmp_path / "policies.yaml", tmp_path / "elsewhere.yaml"
    watched = WatchedPolicies(path)
    assert (read_policies(path), watched.read()) == (NO_POLICIES, NO_POLICIES)
    path.symlink_to(target)
    for read in (lambda: read_policies(path), watched.read):
        with pytest.raises(MalformedError, match="leads nowhere"):
            read()
    target.write_text(TEXT)
    assert watched.read() == read_policies(path) != NO_POLICIES
    target.unlink()
    with pytest.raises(MalformedError, match="leads nowhere"):
        watched.read()
