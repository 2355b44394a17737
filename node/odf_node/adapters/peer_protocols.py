"""Protocols of peers beside our exchange: what a plug-in of the group ``odf_node.peers`` is, and how one is found.

A node that speaks our exchange is spoken to by it, whatever the address says; a protocol is for servers that do not.

Source: clauses PLUG-1 to PLUG-4 and PLUG-9 in ``spec/plug-ins.md``; EX-15 in ``spec/extensions/exchange.md``.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odf_node.plug_ins import load_plug_ins

if TYPE_CHECKING:
    from yarl import URL

    from odf_node.adapters.http_client import HttpClient
    from odf_node.ports.peer_client import OnBytes, PeerDataset
    from odf_node.ports.pushes import PushedHead, PushOutcome, SentObjects
    from odf_node.store import MetadataStore

GROUP: Final = "odf_node.peers"


@dataclass(frozen=True, slots=True)
class PeerProtocol:
    """A protocol of servers at HTTP addresses.

    Attributes:
        schemes: As users write them in addresses, and what they mean for HTTP: ``odf+https`` and ``https``.
        open: Gives the dataset at an address with a trailing slash; it closes the client, which is open.
        push: Brings such a dataset up to a head that is in the store, tells of bytes of objects that are sent, and
            returns what was done; errors as ``http_push.push_dataset``.
    """

    schemes: "Mapping[str, str]"
    open: "Callable[[HttpClient, URL], PeerDataset]"
    push: "Callable[[HttpClient, URL, PushedHead, MetadataStore, SentObjects, OnBytes | None], Awaitable[PushOutcome]]"


def find_protocol(address: str) -> PeerProtocol | None:
    """Find the protocol that the scheme of an address asks for; None where it asks for none that is installed."""
    scheme, separator, _ = address.partition("://")
    if not separator or scheme in {"http", "https", "file"}:
        return None
    protocols = load_plug_ins(GROUP, PeerProtocol).values()
    return next((each for each in protocols if scheme in each.schemes), None)
