"""Lists of leaves of objects, for those who read one from several nodes at once (EX-40)."""

import threading
from collections import OrderedDict
from typing import Final

from aiohttp import web

from odf_node.http.absent_objects import get_size_bytes
from odf_node.http.addressed import get_hash, get_readable
from odf_node.http.answers import IMMUTABLE, answer_bytes
from odf_node.http.callers import get_caller
from odf_node.http.served_node import NODE
from odf_node.ports import ObjectStore
from odf_node.ports.errors import ObjectNotFoundError
from odf_node.threads import finish_in_thread
from odf_node.turns import FairTurns, TurnLimits
from odf_protocol.exchange.hash_tree import LEAF_BYTES, MAX_LEAVES, TREE_MEDIA_TYPE, count_leaves, hash_leaves
from odf_protocol.exchange.limits import MAX_WAITING_LEAVES
from odf_protocol.exchange.routes import PREFIX
from odf_protocol.multihash import Multihash

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Lists that are kept in memory: of half a terabyte of objects.  # guess: what is being spread just now"""


class KeptLeaves:
    """Lists that were asked for lately; making one reads the whole object, so one is made at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Multihash, bytes] = OrderedDict()
        self._turns = FairTurns(lambda: TurnLimits(1, MAX_WAITING_LEAVES))

    async def get(self, objects: ObjectStore, object_hash: Multihash, size_bytes: int, caller: str) -> bytes:
        """Return the list of an object that is here; ``caller`` waits for a turn, where others wait.

        Raises:
            TooManyWaitingError: Many wait for such lists already.
        """
        if object_hash not in self._kept:
            async with self._turns.ask(caller):
                if object_hash not in self._kept:  # whoever had the turn before may have asked the same
                    self._kept[object_hash] = await _read_leaves(objects, object_hash, size_bytes)
        raw = self._kept[object_hash]
        self._kept.move_to_end(object_hash)
        while sum(map(len, self._kept.values())) > KEPT_BYTES and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return raw


async def _read_leaves(objects: ObjectStore, object_hash: Multihash, size_bytes: int) -> bytes:
    stopped = threading.Event()

    def read() -> bytes:
        with objects.open(object_hash) as file:
            leaves = iter(lambda: b"" if stopped.is_set() else file.read(LEAF_BYTES), b"")
            return hash_leaves(leaves, size_bytes).raw

    # A terabyte takes long: a daemon that is told to end must not wait for it.
    return await finish_in_thread(read, stop=stopped.set)


LEAVES: Final = web.AppKey("leaves", KeptLeaves)


def add_routes(app: web.Application) -> None:
    """Register the route."""
    app[LEAVES] = KeptLeaves()
    app.router.add_get(f"/{PREFIX}/datasets/{{dataset}}/leaves/{{hash}}", _get_leaves)


async def _get_leaves(request: web.Request) -> web.Response:
    record = await get_readable(request)
    object_hash = get_hash(request)
    node = request.app[NODE]
    size_bytes = await get_size_bytes(node, record, object_hash)
    if count_leaves(size_bytes) > MAX_LEAVES:
        raise ObjectNotFoundError(object_hash)
    raw = await request.app[LEAVES].get(node.objects, object_hash, size_bytes, get_caller(request).peer)
    etag = f"{object_hash}-{LEAF_BYTES}"
    return answer_bytes(request, raw, etag=etag, cache=IMMUTABLE, content_type=TREE_MEDIA_TYPE)
