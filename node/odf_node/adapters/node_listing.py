"""Asking a node which datasets it offers to whoever asks (EX-14)."""

from pathlib import Path

from odf_node.adapters.exchange_peer import split_dataset_url
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.limits import MAX_JSON_BYTES, MAX_LISTED_DATASETS
from odf_protocol.exchange.messages import DatasetPage, DatasetSummary, decode_message
from odf_protocol.exchange.routes import PREFIX

__all__ = ["list_offered"]


async def list_offered(address: str, settings: ClientSettings | None = None) -> list[DatasetSummary]:
    """List what a node offers, by name; all of it is the node's word.

    Args:
        address: Of the node, ``http(s)://host[:port][/place]``, without a dataset's name.
        settings: Patience, token and signature; None: the usual.

    Raises:
        MalformedError: No such address, or an answer that cannot be read.
        PeerNotFoundError: A server that has no list, as plain ODF servers.
        PeerUnavailableError: Nobody answers there.
        PeerLiedError: Pages that do not go on.
        UnsupportedError: More datasets than are listed.
    """
    # As the address of a dataset is read, with a name that none has.
    url = parse_peer_url(f"{address.rstrip('/')}/_")
    if isinstance(url, Path):
        raise MalformedError("address", expected="an http or https address of a node", found=repr(address))
    place = split_dataset_url(url)[0] / PREFIX / "datasets"
    found: list[DatasetSummary] = []
    after = ""
    async with HttpClient(settings or ClientSettings()) as client:
        client.may_sign = True
        while True:
            asked = place.with_query(after=after) if after else place
            page = decode_message(await client.get_bytes(asked, "list", limit_bytes=MAX_JSON_BYTES), DatasetPage)
            names = [after, *(each.name for each in page.datasets)]
            if names != sorted(set(names)) or (page.next_after is not None and page.next_after != names[-1]):
                raise PeerLiedError(str(asked), "EX-14 datasets", expected="names in their order", found=names[-1])
            found += page.datasets
            if page.next_after is None:
                return found
            if not page.datasets:
                raise PeerLiedError(str(asked), "EX-14 datasets", expected="pages that go on", found=page.next_after)
            if len(found) >= MAX_LISTED_DATASETS:
                raise UnsupportedError(f"list of {place}", found="more", supported=f"{MAX_LISTED_DATASETS} datasets")
            after = page.next_after
