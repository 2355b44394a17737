"""Asking a node which datasets it offers to whoever asks (EX-14), and in which of them words occur (EX-89)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from odf_node.adapters.exchange_peer import split_dataset_url
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_failures import error_of_status
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.limits import (
    MAX_JSON_BYTES,
    MAX_LISTED_DATASETS,
    MAX_PROBLEM_TEXT_CHARACTERS,
    MAX_REPORTED_CHARACTERS,
    MAX_REPORTED_WORDS,
)
from odf_protocol.exchange.messages import (
    JSON_MEDIA_TYPE,
    DatasetPage,
    DatasetSummary,
    DatasetTexts,
    Name,
    decode_message,
)
from odf_protocol.exchange.routes import PREFIX
from odf_protocol.exchange.words import fold, match_texts


@dataclass(frozen=True, slots=True)
class Found:
    """A dataset of another node that has the words; all of it is that node's word.

    Attributes:
        name: Its name there.
        kind: Root or Derivative.
        url: By which it is pulled.
        dataset_id: Its identity.
        description: What it says of itself.
        where: In which of its texts the words are.
    """

    name: str
    kind: str
    url: str
    dataset_id: str
    description: str
    where: tuple[str, ...] = ()


async def list_proposed(address: str, settings: ClientSettings | None = None) -> list[DatasetSummary]:
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
    return [each async for each in _iter_proposed(address, (), settings or ClientSettings(), None)]


async def search_proposed(
    address: str,
    words: Sequence[str],
    most: int,
    settings: ClientSettings,
    *,
    limit_s: float,
    resolver: AbstractResolver | None = None,
) -> list[Found]:
    """Find what a node offers in which every word occurs, by name; errors as ``list_proposed``.

    A node that does not search gives its whole list, of which the names are looked at; a server of the reference
    implementation its own list (EX-91).

    Args:
        address: As of ``list_proposed``.
        words: As ``fold`` takes them.
        most: No more than these are waited for.
        settings: Patience, token and signature.
        limit_s: How long all of it may take.
        resolver: Finds hosts; None: the system's.

    Raises:
        PeerUnavailableError: It takes too long.
    """
    wanted = fold(words)
    found: list[Found] = []
    try:
        async with asyncio.timeout(limit_s), aclosing(_iter_reported(address, words, settings, resolver)) as reported:
            async for each, texts in reported:
                # What a node gives beside what was asked for is passed over, however often it does.
                if where := match_texts(wanted, texts.list_named(each.name)):
                    found.append(replace(each, where=where))
                if len(found) >= most:
                    break
    except TimeoutError as error:
        raise PeerUnavailableError(address, f"no whole answer within {limit_s:.0f} s") from error
    return found


async def _iter_reported(
    address: str, words: Sequence[str], settings: ClientSettings, resolver: AbstractResolver | None
) -> AsyncGenerator[tuple[Found, DatasetTexts], None]:
    plain = address.rstrip("/").removeprefix("odf+")
    try:
        async with aclosing(_iter_proposed(plain, words, settings, resolver)) as proposed:
            async for each in proposed:
                texts = each.texts or DatasetTexts()
                yield Found(each.name, each.kind, f"{plain}/{each.name}", each.dataset_id, texts.description), texts
    except PeerNotFoundError as error:
        absent = error
    else:
        return
    async with HttpClient(settings, resolver=resolver) as client:
        try:
            async with aclosing(iter_listed(client, split_dataset_url(_parse_address(plain))[0])) as listed:
                async for other in listed:
                    url = f"odf+{plain}/{other.alias}"
                    found = Found(other.name, other.kind.capitalize(), url, other.id, other.texts.description)
                    yield found, other.texts
        except (PeerNotFoundError, MalformedError):
            raise absent from None  # no server of that kind either


def _parse_address(address: str) -> URL:
    # As the address of a dataset is read, with a name that none has.
    url = parse_peer_url(f"{address.rstrip('/')}/_")
    if isinstance(url, Path):
        raise MalformedError("address", expected="an http or https address of a node", found=repr(address))
    return url


async def _iter_proposed(
    address: str, words: Sequence[str], settings: ClientSettings, resolver: AbstractResolver | None
) -> AsyncGenerator[DatasetSummary, None]:
    place = (split_dataset_url(_parse_address(address))[0] / PREFIX / "datasets").with_query(
        [("word", word) for word in words]
    )
    listed = 0
    after = ""
    async with HttpClient(settings, resolver=resolver) as client:
        for _ in range(MAX_LISTED_DATASETS):
            asked = place.extend_query(after=after) if after else place
            page = decode_message(await client.get_bytes(asked, "list", limit_bytes=MAX_JSON_BYTES), DatasetPage)
            names = [after, *(each.name for each in page.datasets)]
            goes_on = page.next_after
            # A search may look at many datasets for nothing, and go on behind the last of them (EX-89).
            is_next = goes_on is None or (goes_on > after and (goes_on >= names[-1] if words else goes_on == names[-1]))
            if names != sorted(set(names)) or not is_next:
                raise PeerLiedError(str(asked), "EX-14 datasets", expected="names in their order", found=names[-1])
            for each in page.datasets:
                yield each
            listed += len(page.datasets)
            if goes_on is None:
                return
            if listed >= MAX_LISTED_DATASETS:
                break
            after = goes_on
    raise UnsupportedError(f"list of {place}", found="more", supported=f"{MAX_LISTED_DATASETS} datasets")


__all__ = ["iter_listed"]

_PAGE: Final = 100
_MAX_PAGES: Final = 100  # guess: 10,000 datasets; more than anybody reads
_QUERY_TEXT: Final = (
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
        keywords = tuple(each[:MAX_REPORTED_CHARACTERS] for each in info.keywords or ())
        description = (info.description or "")[:MAX_PROBLEM_TEXT_CHARACTERS]
        return DatasetTexts(description=description, keywords=keywords[:MAX_REPORTED_WORDS])


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
    for page in range(_MAX_PAGES):
        query_text = msgspec.json.encode({"query": _QUERY_TEXT, "variables": {"page": page, "perPage": _PAGE}})
        headers = {"Content-Type": JSON_MEDIA_TYPE}
        answer = await client.ask("POST", asked, data=query_text, headers=headers, limit_bytes=MAX_JSON_BYTES)
        if answer.status != HTTPStatus.OK:
            raise error_of_status(str(asked), answer.status, "list", answer.body, answer.content_type)
        nodes = decode_message(answer.body, _Answer).data.search.query.nodes
        if len(nodes) > _PAGE:
            raise MalformedError("list", where=str(asked), expected=f"{_PAGE} datasets a page", found=len(nodes))
        for each in nodes:
            yield each
        if len(nodes) < _PAGE:
            return
