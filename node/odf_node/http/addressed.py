"""From the untrusted text of a path to the dataset, hash or number that is meant (EX-2, EX-3)."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.http.callers import get_caller
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import NODE, ServedNode
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError, ObjectNotFoundError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, UnsupportedError
from odf_protocol.exchange.messages import OBJECT_ABSENT
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.names import DatasetName

_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


async def get_readable(request: web.Request) -> DatasetRecord:
    """Return the dataset that the path names by name or identity, if whoever asks may read it.

    Raises:
        DatasetNotFoundError: It is not here, or not for this caller: the answers are the same, and so is the way to
            them, as the database is asked one question that has a row or has none.
    """
    record = await find_readable(request)
    if record is None:
        raise DatasetNotFoundError("of this name")
    return record


async def find_readable(request: web.Request) -> DatasetRecord | None:
    """Return the dataset as ``get_readable``; None: it is not here, or not for this caller."""
    which = _find_address(request)
    datasets, reads = request.app[NODE].store, get_caller(request).reads
    return None if which is None else await asyncio.to_thread(datasets.find_readable, which, reads)


def _find_address(request: web.Request) -> DatasetId | DatasetName | None:
    text = request.match_info["dataset"]
    try:
        return DatasetId.parse(text) if text.startswith(DatasetId.scheme) else DatasetName.parse(text)
    except (MalformedError, UnsupportedError):
        return None  # what cannot be a dataset's name is the name of no dataset


async def get_followed(request: web.Request) -> DatasetRecord:
    """Return the dataset that the path names, if nothing is proved against it: a frozen one has no newest block.

    Raises:
        DatasetNotFoundError: As ``get_readable``.
        FrozenDatasetError: Two histories of it are signed; the proof is at ``.../disputes`` (EQUIV-10).
    """
    record = await get_readable(request)
    await asyncio.to_thread(request.app[NODE].disputes.require_undisputed, record.id, record.name)
    return record


def get_hash(request: web.Request) -> Multihash:
    """Return the hash that the path ends with.

    Raises:
        MalformedError: It is none.
        NotFoundError: A kind of hash by which nothing is named here.
    """
    found = Multihash.parse(request.match_info["hash"])
    if found.code != SHA3_256:
        raise NotFoundError("nothing is named by a hash of this kind")
    return found


def get_number(request: web.Request, name: str, default: int) -> int:
    """Return a number of the query.

    Raises:
        MalformedError: It is none, or given twice.
    """
    values = request.query.getall(name, [])
    if not values:
        return default
    if len(values) > 1 or not _NUMBER.fullmatch(values[0]):
        raise MalformedError(f"query parameter '{name}'", expected="one whole number", found=repr(values))
    return int(values[0])


RETRY_AFTER_S: Final = "15"  # guess: an engine's start and a step


async def get_size_bytes(node: ServedNode, record: DatasetRecord, object_hash: Multihash) -> int:
    """Return the size of an object that the dataset's chain names and that is here.

    Raises:
        ProblemError: As ``explained_absence``.
        ObjectNotFoundError: The chain does not name it, or it is missing.
    """

    def find() -> int:
        with explained_absence(node, record, object_hash):
            require_had(node, record, object_hash)
            return node.objects.get_size(object_hash)

    return await asyncio.to_thread(find)


def require_had(node: ServedNode, record: DatasetRecord, object_hash: Multihash) -> None:
    """Stop whoever asks a dataset for an object that it does not have, without a look at the disk (EX-81).

    Raises:
        ObjectNotFoundError: It does not.
    """
    if not node.store.has_dataset_object(record.id, object_hash):
        raise ObjectNotFoundError(object_hash)


@contextmanager
def explained_absence(node: ServedNode, record: DatasetRecord, object_hash: Multihash) -> Iterator[None]:
    """Say of an object that is not here whether that is as it should be; runs in a thread.

    Raises:
        ProblemError: It is: 404 in words of its own, so that nobody takes this node for a damaged one; 503 where it is
            being computed again (CACHE-6).
        ObjectNotFoundError: It is not.
    """
    try:
        yield
    except ObjectNotFoundError:
        names = node.store
        has = names.has_dataset_object(record.id, object_hash)
        is_lost = has and object_hash not in names.list_absent_objects(record.id)
        if is_lost or not names.names_object(record.id, object_hash):
            raise
        if node.rebuilds is not None and node.rebuilds.request(record):
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                OBJECT_ABSENT,
                "this node computes the object again just now; ask for it later",
                headers={"Retry-After": RETRY_AFTER_S},
            ) from None
        raise ProblemError(
            HTTPStatus.NOT_FOUND, OBJECT_ABSENT, "this node holds the metadata of this object and not the object"
        ) from None
