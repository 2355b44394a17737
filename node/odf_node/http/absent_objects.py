"""The answer about objects that a chain names and that are not here by choice (PART-7)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from odf_node.http.problems import ProblemError
from odf_node.http.served_node import ServedNode
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.errors import ObjectNotFoundError
from odf_protocol.exchange.messages import OBJECT_ABSENT
from odf_protocol.multihash import Multihash

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
    if not node.object_names.has_dataset_object(record.id, object_hash):
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
        names = node.object_names
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
