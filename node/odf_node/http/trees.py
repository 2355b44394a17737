"""Hash trees of slices, by which a reader finds where its own version differs (EX-30, EX-31)."""

import re
from typing import TYPE_CHECKING, Final

from aiohttp import web

from odf_node.http.absent_objects import get_size_bytes
from odf_node.http.addressed import get_hash, get_readable
from odf_node.http.answers import answer_message
from odf_node.http.callers import get_caller
from odf_node.http.served_node import NODE
from odf_protocol import hashing
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_TREE_QUESTIONS
from odf_protocol.exchange.messages import TreeHeader, TreeNodes
from odf_protocol.exchange.routes import PREFIX

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary
    from odf_protocol.hashing.v1_difference import NodeName

_QUESTION: Final = re.compile(r"(c|\d{1,6})\.(\d{1,2})\.(\d{1,12})", re.ASCII)
"""Column (``c`` for the tree over the columns), level, index."""


def add_routes(app: web.Application) -> None:
    """Register the routes."""
    app.router.add_get(f"/{PREFIX}/datasets/{{dataset}}/trees/{{hash}}", _get_header)
    app.router.add_get(f"/{PREFIX}/datasets/{{dataset}}/trees/{{hash}}/nodes", _get_nodes)


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
    questions = [_read_question(text) for text in request.query.getone("ask", "").split(",")]
    if len(questions) > MAX_TREE_QUESTIONS:
        raise MalformedError("questions", expected=f"at most {MAX_TREE_QUESTIONS}", found=len(questions))
    summary = await _get_summary(request)
    return answer_message(
        TreeNodes(children=tuple(hashing.v1_difference.answer_question(summary, question) for question in questions))
    )


async def _get_summary(request: web.Request) -> "TableSummary":
    record = await get_readable(request)
    object_hash = get_hash(request)
    node = request.app[NODE]
    await get_size_bytes(node, record, object_hash)
    return await node.trees.get_summary(object_hash, get_caller(request).peer)


def _read_question(text: str) -> "NodeName":
    found = _QUESTION.fullmatch(text)
    if found is None:
        raise MalformedError("question", expected="column.level.index", found=repr(text))
    column, level, index = found.groups()
    return hashing.v1_difference.NodeName(None if column == "c" else int(column), int(level), int(index))
