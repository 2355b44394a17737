"""Hash trees of slices and lists of leaves of objects.

By the trees a reader finds where its own version differs (EX-30, EX-31); by lists of leaves it reads one object from
several nodes at once (EX-40).
"""

import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from aiohttp import web

from odf_node.http.addressed import get_hash, get_readable, get_size_bytes
from odf_node.http.answers import IMMUTABLE, answer_bytes, answer_message
from odf_node.http.callers import get_caller
from odf_node.http.route_tables import Route
from odf_node.http.served_node import NODE
from odf_node.ports.objects import StoredObjects
from odf_node.records.errors import ObjectNotFoundError
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_TREE_QUERIES, MAX_WAITING_LEAVES
from odf_protocol.exchange.messages import TreeHeader, TreeNodes
from odf_protocol.exchange.object_parts import LEAF_BYTES, MAX_LEAVES, TREE_MEDIA_TYPE, count_leaves, hash_leaves
from odf_protocol.exchange.routes import PREFIX
from odf_protocol.hashing.v1_difference import NodeName, answer_query
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary

_QUERY_TEXT: Final = re.compile(r"(c|\d{1,6})\.(\d{1,2})\.(\d{1,12})", re.ASCII)
"""Column (``c`` for the tree over the columns), level, index."""


def prepare_app(app: web.Application) -> None:
    """Make what the routes work with."""
    app[LEAVES] = KeptLeaves()


async def _get_header(request: web.Request) -> web.Response:
    summary = await _get_summary(request)
    return answer_message(
        TreeHeader(
            root=str(summary.root),
            row_count=summary.row_count,
            schema=summary.schema,
            columns_top=summary.columns_top,
        )
    )


async def _get_nodes(request: web.Request) -> web.Response:
    query_service = [_read_query(text) for text in request.query.getone("ask", "").split(",")]
    if len(query_service) > MAX_TREE_QUERIES:
        raise MalformedError("questions", expected=f"at most {MAX_TREE_QUERIES}", found=len(query_service))
    summary = await _get_summary(request)
    return answer_message(TreeNodes(children=tuple(answer_query(summary, query_text) for query_text in query_service)))


async def _get_summary(request: web.Request) -> "TableSummary":
    record = await get_readable(request)
    object_hash = get_hash(request)
    node = request.app[NODE]
    await get_size_bytes(node, record, object_hash)
    return await node.trees.get_summary(object_hash, get_caller(request).peer)


def _read_query(text: str) -> NodeName:
    found = _QUERY_TEXT.fullmatch(text)
    if found is None:
        raise MalformedError("question", expected="column.level.index", found=repr(text))
    column, level, index = found.groups()
    return NodeName(None if column == "c" else int(column), int(level), int(index))


KEPT_BYTES: Final = 16 * 1024 * 1024
"""Lists that are kept in memory: of half a terabyte of objects.  # guess: what is being spread just now"""


class KeptLeaves:
    """Lists that were asked for lately; making one reads the whole object, so one is made at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Multihash, bytes] = OrderedDict()
        self._semaphore = FairSemaphore(lambda: TurnLimits(1, MAX_WAITING_LEAVES))

    async def get(self, objects: StoredObjects, object_hash: Multihash, size_bytes: int, caller: str) -> bytes:
        """Return the list of an object that is here; ``caller`` waits for a turn, where others wait.

        Raises:
            TooManyWaitingError: Many wait for such lists already.
        """
        if object_hash not in self._kept:
            async with self._semaphore.ask(caller):
                if object_hash not in self._kept:  # whoever had the turn before may have asked the same
                    self._kept[object_hash] = await _read_leaves(objects, object_hash, size_bytes)
        raw = self._kept[object_hash]
        self._kept.move_to_end(object_hash)
        while sum(map(len, self._kept.values())) > KEPT_BYTES and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return raw


async def _read_leaves(objects: StoredObjects, object_hash: Multihash, size_bytes: int) -> bytes:
    stopped = threading.Event()

    def read() -> bytes:
        with objects.open(object_hash) as file:
            leaves = iter(lambda: b"" if stopped.is_set() else file.read(LEAF_BYTES), b"")
            return hash_leaves(leaves, size_bytes).raw

    # A terabyte takes long: a daemon that is told to end must not wait for it.
    return await finish_in_thread(read, stop=stopped.set)


LEAVES: Final = web.AppKey("leaves", KeptLeaves)


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


ROUTES: Final = (
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/leaves/{{hash}}",
        _get_leaves,
        operation="""\
summary: The leaves of the hash tree over an object (EX-40).
parameters: [dataset, hash]
responses:
  200: {description: 32 bytes for each MiB., content: {application/vnd.odf-node.hash-tree: {}}}
  304: {description: The client has it.}
  400: Problem
  404: Problem
  503: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/trees/{{hash}}",
        _get_header,
        operation="""\
summary: What the root of a slice's v1 hash binds together (EX-30).
parameters: [dataset, hash]
responses:
  200: {description: The header., content: {application/json: {schema: {$ref: '#/components/schemas/TreeHeader'}}}}
  400: Problem
  404: Problem
  422: Problem
  503: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/trees/{{hash}}/nodes",
        _get_nodes,
        operation="""\
summary: Children of nodes of that tree (EX-31).
parameters:
  - dataset
  - hash
  - {name: ask, in: query, required: true, description: 'column.level.index, separated by commas;
        c for the tree over the columns', schema: {type: string}}
responses:
  200: {description: 'The children, in the order of the questions.', content: {application/json: {
          schema: {$ref: '#/components/schemas/TreeNodes'}}}}
  400: Problem
  404: Problem
  422: Problem
  503: Problem
""",
    ),
)
