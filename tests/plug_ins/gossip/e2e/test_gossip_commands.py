"""``peer`` and ``subscribe`` as their user meets them."""

from pathlib import Path

from support.nodes import RealNode

STRANGER = "did:odf:fed01" + "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"


def test_peers_are_named_listed_and_forgotten(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    assert node.must("peer", "add", "https://node.example:8443/").out == "https://node.example:8443 is a peer\n"
    (row,) = node.must("peer", "list", "-o", "json").json()
    assert (row["url"], row["named"], row["node"]) == ("https://node.example:8443", True, None)
    refused = node.run("peer", "add", "node.example")
    assert refused.code == 2
    assert "http(s)://host:port" in refused.err
    assert node.must("peer", "delete", "https://node.example:8443").code == 0
    assert node.run("peer", "delete", "https://node.example:8443").code == 3


def test_subscription_by_identity_needs_a_name_and_can_be_ended(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    nameless = node.run("subscribe", STRANGER)
    assert (nameless.code, "--as" in nameless.err) == (2, True)
    node.must("subscribe", STRANGER, "--as", "theirs")
    (row,) = node.must("subscribe", "--list", "-o", "json").json()
    assert (row["name"], row["dataset"], row["url"]) == ("theirs", STRANGER, None)
    node.must("subscribe", "theirs", "--off")
    assert node.must("subscribe", "--list", "-o", "json").json() == []
    assert node.run("subscribe").code == 2
