"""Lists of leaves of objects, for those who read one from several nodes at once (EX-40)."""

import asyncio
from collections import OrderedDict
from typing import Final

from aiohttp import web

from odf_node.exchange.hash_tree import LEAF_BYTES, MAX_LEAVES, TREE_MEDIA_TYPE, count_leaves, read_tree
from odf_node.exchange.routes import PREFIX
from odf_node.http.absent_objects import explained_absence
from odf_node.http.addressed import get_hash, get_readable
from odf_node.http.answers import IMMUTABLE, answer_bytes
from odf_node.http.served_node import NODE
from odf_node.ports.errors import ObjectNotFoundError
from odf_protocol.multihash import Multihash

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Lists that are kept in memory: of half a terabyte of objects.  # guess: what is being spread just now"""


class KeptLeaves:
    """Lists that were asked for lately; making one reads the whole object, so one is made at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Multihash, bytes] = OrderedDict()
        self._alone = asyncio.Lock()

    async def get(self, request: web.Request, object_hash: Multihash, size_bytes: int) -> bytes:
        """Return the list of an object that is here."""
        async with self._alone:
            raw = self._kept.get(object_hash)
            if raw is None:
                objects = request.app[NODE].objects

                def read() -> bytes:
                    with objects.open(object_hash) as file:
                        return read_tree(file, size_bytes).raw

                raw = self._kept[object_hash] = await asyncio.to_thread(read)
            self._kept.move_to_end(object_hash)
            while sum(map(len, self._kept.values())) > KEPT_BYTES and len(self._kept) > 1:
                self._kept.popitem(last=False)
            return raw


LEAVES: Final = web.AppKey("leaves", KeptLeaves)


def add_routes(app: web.Application) -> None:
    """Register the route."""
    app[LEAVES] = KeptLeaves()
    app.router.add_get(f"/{PREFIX}/datasets/{{dataset}}/leaves/{{hash}}", _get_leaves)


async def _get_leaves(request: web.Request) -> web.Response:
    record = await get_readable(request)
    object_hash = get_hash(request)
    node = request.app[NODE]
    if not await asyncio.to_thread(node.store.has_dataset_object, record.id, object_hash):
        raise ObjectNotFoundError(object_hash)

    def find_size() -> int:
        with explained_absence(node, record, object_hash):
            return node.objects.get_size(object_hash)

    size_bytes = await asyncio.to_thread(find_size)
    if count_leaves(size_bytes) > MAX_LEAVES:
        raise ObjectNotFoundError(object_hash)
    raw = await request.app[LEAVES].get(request, object_hash, size_bytes)
    etag = f"{object_hash}-{LEAF_BYTES}"
    return answer_bytes(request, raw, etag=etag, cache=IMMUTABLE, content_type=TREE_MEDIA_TYPE)
