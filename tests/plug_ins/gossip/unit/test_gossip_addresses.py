"""Addresses of peers: one spelling, public told from private, buckets (GOSSIP-8 to GOSSIP-10)."""

from ipaddress import ip_address

import pytest

from odf_protocol.errors import MalformedError
from odf_protocol.peer_addresses import PeerAddress, bucket_of_ip
from odf_protocol.public_addresses import is_public_ip


@pytest.mark.parametrize(
    ("text", "host", "port", "bucket"),
    [
        ("http://8.8.4.4", "8.8.4.4", 80, "8.8"),
        ("https://8.8.4.4:8443", "8.8.4.4", 8443, "8.8"),
        ("https://[2001:4860:4860::8888]", "2001:4860:4860::8888", 443, "2001:4860"),
        ("https://node.data.example.org", "node.data.example.org", 443, "name example.org"),
        ("https://xn--bcher-kva.example", "xn--bcher-kva.example", 443, "name xn--bcher-kva.example"),
    ],
)
def test_public_address_is_read(text: str, host: str, port: int, bucket: str) -> None:
    address = PeerAddress.parse(text)
    assert (address.host, address.port, address.bucket, address.is_public) == (host, port, bucket, True)


@pytest.mark.parametrize(
    "text",
    [
        *("http://127.0.0.1:8080", "http://10.1.2.3", "http://192.168.0.1", "http://169.254.169.254", "http://0.0.0.0"),
        *("http://[::1]", "http://[fe80::1]", "http://[fc00::1]", "http://[::ffff:7f00:1]", "http://100.64.0.1"),
        *("http://[64:ff9b::a00:1]", "http://[2002:a00:1::]", "http://224.0.0.1", "http://255.255.255.255"),
        *(
            "http://localhost:8080",
            "http://a.localhost",
            "http://printer.local",
            "http://db.internal",
            "http://intranet",
        ),
    ],
)
def test_private_address_is_told_and_is_a_bucket_of_its_own(text: str) -> None:
    address = PeerAddress.parse(text)
    assert not address.is_public
    assert address.bucket == text


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://8.8.8.8", "file:///etc/passwd", "HTTP://8.8.8.8", "http://8.8.8.8/", "http://8.8.8.8/path", "http://"),
        *("http://user@8.8.8.8", "http://8.8.8.8?x", "http://8.8.8.8#x", "http://8.8.8.8:80", "https://8.8.8.8:443"),
        *("http://8.8.8.8:0", "http://8.8.8.8:65536", "http://8.8.8.8:08080", "http://Node.example", "http://a..b"),
        *("http://0x7f.0.0.1", "http://0177.0.0.1", "http://2130706433", "http://127.1", "http://0x7f000001"),
        *("http://[::1", "http://::1", "http://[0:0:0:0:0:0:0:1]", "http://[::ffff:127.0.0.1]", "http://[example]"),
        *("http://a_b.example", "http://-a.example", "http://example.", "http://\u0435xample.org", " http://8.8.8.8"),
        "http://" + "a" * 200 + ".example",
    ],
)
def test_other_spellings_and_other_things_are_rejected(text: str) -> None:
    with pytest.raises(MalformedError):
        PeerAddress.parse(text)


@pytest.mark.parametrize("host", ["::ffff:8.8.8.8", "::ffff:808:808"])
def test_every_python_spells_an_address_that_another_library_read_alike(host: str) -> None:
    assert PeerAddress.of("http", host, 80).text == "http://[::ffff:808:808]"
    assert PeerAddress.of("https", host, 80) == PeerAddress.parse("https://[::ffff:808:808]:80")


@pytest.mark.parametrize("parts", [("ftp", "8.8.8.8", 21), ("http", "a_b.example", 80), ("http", "8.8.8.8", 0)])
def test_parts_of_no_address_are_rejected(parts: tuple[str, str, int]) -> None:
    with pytest.raises(MalformedError):
        PeerAddress.of(*parts)


def test_address_inside_an_address_counts() -> None:
    assert is_public_ip(ip_address("::ffff:8.8.8.8"))
    assert not is_public_ip(ip_address("::ffff:10.0.0.1"))
    assert not is_public_ip(ip_address("64:ff9b::7f00:1"))
    assert bucket_of_ip(ip_address("::ffff:8.8.8.8")) == "8.8"
    assert bucket_of_ip(ip_address("127.0.0.1")) == "127.0.0.1"
