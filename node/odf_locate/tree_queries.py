"""Asking a node where its version of a slice differs from ours, by a few hashes (EX-30, EX-31)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odf_node.adapters.exchange_peer import split_dataset_url
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_JSON_BYTES, MAX_TREE_QUERIES, MAX_TREE_SCHEMA_BYTES
from odf_protocol.exchange.messages import TreeHeader, TreeNodes, decode_message
from odf_protocol.exchange.routes import dataset_path
from odf_protocol.hashing.v1_difference import DifferenceSearch, TableHeader
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary
    from odf_protocol.hashing.v1_difference import Difference, NodeName


@dataclass(frozen=True, slots=True)
class LocatedDifference:
    """Where two versions of a slice differ, at the grain of 4,096 rows of a column, and what it took to find out."""

    differences: "tuple[Difference, ...]"
    is_complete: bool
    requests: int
    answer_bytes: int


async def locate_difference(
    address: str, slice_hash: Multihash, mine: "TableSummary", settings: ClientSettings | None = None
) -> LocatedDifference:
    """Find where a node's slice differs from a table of ours.

    Args:
        address: Of the dataset at a node that speaks our exchange.
        slice_hash: Physical hash of its slice.
        mine: Hashes of our version.
        settings: Patience and token; None: the usual.

    Raises:
        MalformedError: No such address, or an answer that cannot be read.
        RejectedError: Other columns, or an answer that contradicts an earlier one.
        PeerNotFoundError, PeerUnavailableError: As the peer answers.
    """
    url = parse_peer_url(address)
    if isinstance(url, Path):
        raise MalformedError("address", expected="an http or https address of a node", found=repr(address))
    base, name = split_dataset_url(url)
    place = base / dataset_path(name) / "trees" / str(slice_hash)
    requests = answer_bytes = 0
    async with HttpClient(settings or ClientSettings()) as client:
        body = await client.get_bytes(place, "slice", limit_bytes=MAX_TREE_SCHEMA_BYTES * 2)
        requests, answer_bytes = 1, len(body)
        stated = decode_message(body, TreeHeader)
        header = TableHeader(stated.row_count, stated.schema, stated.columns_top)
        search = DifferenceSearch(mine, Multihash.parse(stated.root), header)
        while search.query_service:
            asked = search.query_service[:MAX_TREE_QUERIES]
            nodes = (place / "nodes").with_query(ask=",".join(map(_write, asked)))
            body = await client.get_bytes(nodes, "slice", limit_bytes=MAX_JSON_BYTES)
            requests, answer_bytes = requests + 1, answer_bytes + len(body)
            answers = decode_message(body, TreeNodes).children
            if len(answers) != len(asked):
                raise PeerLiedError(str(nodes), "EX-31 nodes", expected=len(asked), found=len(answers))
            for query_text, children in zip(asked, answers, strict=True):
                search.answer(query_text, children)
    return LocatedDifference(tuple(search.differences), search.is_complete, requests, answer_bytes)


def _write(query_text: "NodeName") -> str:
    column = "c" if query_text.column is None else query_text.column
    return f"{column}.{query_text.level}.{query_text.index}"
