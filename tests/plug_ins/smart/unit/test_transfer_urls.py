"""Where a peer may send us for objects, and with what (SMART-11)."""

import socket
from typing import Any

import pytest
from yarl import URL

from odf_node.adapters.public_resolver import PublicResolver
from odf_node.ports.peer_errors import PeerLiedError
from odf_smart.transfer_urls import read_transfer_url
from odf_smart_protocol.messages import Header, TransferUrl
from support.event_loop import in_loop

DATASET = URL("https://node.example/acc/demo/")


def found(url: str, dataset: str = str(DATASET), **headers: str) -> tuple[URL, dict[str, str]]:
    named = tuple(Header(name=name.replace("_", "-"), value=value) for name, value in headers.items())
    place, sent = read_transfer_url(TransferUrl(url=url, headers=named), dataset_url=URL(dataset))
    return place, dict(sent)


@pytest.mark.parametrize(
    ("url", "dataset"),
    [
        pytest.param("https://node.example/acc/demo/data/f1620", str(DATASET), id="the-same-host"),
        pytest.param("http://127.0.0.1:8126/demo/data/f1620", "http://127.0.0.1:8127/demo/", id="another-port"),
        pytest.param("https://bucket.s3.example/x?X-Amz-Signature=a%2Fb", str(DATASET), id="a-bucket"),
        pytest.param("https://93.184.215.14/x", str(DATASET), id="a-public-address"),
    ],
)
def test_address_is_used_verbatim(url: str, dataset: str) -> None:
    assert str(found(url, dataset)[0]) == url


def test_headers_go_along_verbatim() -> None:
    assert found("https://node.example/x", x_amz_date="now", authorization="Bearer t")[1] == {
        "x-amz-date": "now",
        "authorization": "Bearer t",
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://node.example/x",
        "ftp://node.example/x",
        "file:///etc/passwd",
        "https:///x",
        "https://me:secret@node.example/x",
        "https://127.0.0.1/x",
        "https://10.1.2.3/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/x",
        "https://[fe80::1%25eth0]/x",
        "https://[::ffff:192.168.0.1]/x",
        "https://224.0.0.1/x",
        "nonsense",
    ],
)
def test_address_that_leads_elsewhere_is_rejected(url: str) -> None:
    with pytest.raises(PeerLiedError, match="SMART-11"):
        found(url)


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer_Encoding", "connection", "RANGE"])
def test_header_that_changes_the_message_is_rejected(name: str) -> None:
    with pytest.raises(PeerLiedError, match="SMART-11"):
        found("https://node.example/x", **{name: "1"})


@in_loop
async def test_names_that_lead_into_private_networks_are_not_resolved() -> None:
    resolver = PublicResolver("localhost")
    try:
        assert await resolver.resolve("localhost", 80, socket.AF_INET)
        other: Any = PublicResolver("node.example")
        with pytest.raises(OSError, match="not in the public internet"):
            await other.resolve("localhost", 80, socket.AF_INET)
        await other.close()
    finally:
        await resolver.close()
