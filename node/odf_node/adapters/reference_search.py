"""Asking a server of the reference implementation which datasets it has, by its GraphQL (EX-91).

Its own search compares names alone, with one text; so all that it lists to whoever asks is looked at here.
"""

from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Final

import msgspec
from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.http_failures import error_of_status
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import (
    MAX_JSON_BYTES,
    MAX_PROBLEM_TEXT_CHARACTERS,
    MAX_TOLD_CHARACTERS,
    MAX_TOLD_WORDS,
)
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE, DatasetTexts, Name, decode_message

__all__ = ["iter_listed"]

_PAGE: Final = 100
_MOST_PAGES: Final = 100  # guess: 10,000 datasets; more than anybody reads
_QUESTION: Final = (
    'query ($page: Int!, $perPage: Int!) { search { query(query: "", page: $page, perPage: $perPage)'
    " { nodes { ... on Dataset { id name alias kind metadata { currentInfo { description keywords } } } } } } }"
)


class _Info(msgspec.Struct, frozen=True):
    description: str | None = None
    keywords: tuple[str, ...] | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    current_info: _Info


class Listed(msgspec.Struct, frozen=True):
    """A dataset as such a server lists it: its word."""

    id: str
    name: Name
    alias: str
    kind: str
    metadata: _Metadata

    def __post_init__(self) -> None:
        DatasetId.parse(self.id)

    @property
    def texts(self) -> DatasetTexts:
        """What it says of itself, as far as a search looks at it."""
        info = self.metadata.current_info
        keywords = tuple(each[:MAX_TOLD_CHARACTERS] for each in info.keywords or ())
        description = (info.description or "")[:MAX_PROBLEM_TEXT_CHARACTERS]
        return DatasetTexts(description=description, keywords=keywords[:MAX_TOLD_WORDS])


class _Nodes(msgspec.Struct, frozen=True):
    nodes: tuple[Listed, ...]


class _Search(msgspec.Struct, frozen=True):
    query: _Nodes


class _Data(msgspec.Struct, frozen=True):
    search: _Search


class _Answer(msgspec.Struct, frozen=True):
    data: _Data


async def iter_listed(client: HttpClient, place: URL) -> AsyncGenerator[Listed, None]:
    """Yield what the server below ``place`` lists, page by page.

    Raises:
        PeerNotFoundError: It has no GraphQL.
        MalformedError: Its answer cannot be read.
    """
    asked = place / "graphql"
    for page in range(_MOST_PAGES):
        question = msgspec.json.encode({"query": _QUESTION, "variables": {"page": page, "perPage": _PAGE}})
        headers = {"Content-Type": JSON_MEDIA_TYPE}
        answer = await client.ask("POST", asked, data=question, headers=headers, limit_bytes=MAX_JSON_BYTES)
        if answer.status != HTTPStatus.OK:
            raise error_of_status(str(asked), answer.status, "list", answer.body, answer.content_type)
        nodes = decode_message(answer.body, _Answer).data.search.query.nodes
        if len(nodes) > _PAGE:
            raise MalformedError("list", where=str(asked), expected=f"{_PAGE} datasets a page", found=len(nodes))
        for each in nodes:
            yield each
        if len(nodes) < _PAGE:
            return
