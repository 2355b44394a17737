"""Questions in SQL from pages: bounded, one at a time, over the datasets that whoever asks may read.

An operator's question goes to the engine that the daemon keeps warm; another viewer's gets an engine of its own,
which ends with it (WARM-2).

Source: clause PAGES-13 in ``spec/plug-ins/pages.md``.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from odf_engines.contract import Limits
from odf_engines.errors import EngineMissingError, InvalidQueryError, LimitExceededError
from odf_engines.reading.row_windows import shorten_cell
from odf_node.composition import Node
from odf_node.configuration.declaration import QUERY_ENGINE
from odf_node.datasets.naming import list_named
from odf_node.datasets.queries import QueryRunner
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.http.problems import problem_of
from odf_node.semaphore import ShortestFirstSemaphore, TurnLimits
from odf_pages.rendering import Page
from odf_pages.requests import Viewer
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.datasets.row_windows import Cell

MAX_ROWS: Final = 500
"""Of an answer; people who want more take ``odf-node sql``.  # guess: some screens"""
MAX_COLUMNS: Final = 100  # guess
CELL_CHARACTERS: Final = 200
MAX_ENGINE_CHARACTERS: Final = 200  # guess: a name, and the digest of a build
SHORT: Final = TurnLimits(at_once=1, waiting=32)  # guess: what waits is a line of text
LONG: Final = TurnLimits(at_once=1, waiting=8)  # guess
SHORT_S: Final = 1.0  # guess: as of questions over Flight SQL
LIMITS: Final = Limits(wall_s=60.0, output_bytes=64 * 1024 * 1024, decoded_bytes=64 * 1024 * 1024)
"""What one question may cost.  # guess: what people wait for, and what the daemon can hold"""

_FIGURES: Final = ("int", "uint", "float", "double", "decimal")
"""Beginnings of the names that Arrow gives to types of numbers."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """What a question gave, as it is shown.

    Attributes:
        names: Of the columns.
        kinds: Their types.
        rows: Of cells.
        engine: Which answered.
        is_cut: There are more rows.
        column_count: How many columns there are.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple["Cell", ...], ...]
    engine: str
    is_cut: bool
    column_count: int

    @property
    def looks(self) -> tuple[str, ...]:
        """How each column is drawn, heading and cells alike: figures end where the column does."""
        return tuple("figure" if kind.startswith(_FIGURES) else "words" for kind in self.kinds)


_Asked = tuple[str, Timestamp | None, str | None, Limits]
"""A query, as of when, the engine, and what it may cost."""


@dataclass(slots=True)
class PageQueries:
    """Asks engines; a short query and a long one at a time, each in a thread of its own."""

    node: Node
    semaphore: ShortestFirstSemaphore = field(
        default_factory=lambda: ShortestFirstSemaphore(SHORT, LONG, short_s=SHORT_S)
    )
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(SHORT.at_once + LONG.at_once, "questions")
    )
    _running: list[EngineHost] = field(default_factory=list)
    _is_closed: bool = False

    async def ask(self, viewer: Viewer, sql: str, as_of: Timestamp | None, engine: str | None) -> ShownAnswer:
        """Answer a question.

        Raises:
            TooManyWaitingError: Others wait already.
            EngineError: It is no query, names what is not there, or costs too much.
            ObjectsAbsentError: It names a dataset whose files are not all here.
        """
        loop, is_long = asyncio.get_running_loop(), engine not in {None, QUERY_ENGINE}

        async def answer(max_s: float | None) -> ShownAnswer:
            limits = LIMITS if max_s is None else replace(LIMITS, wall_s=max_s)
            asked = sql, as_of, engine, limits
            return await loop.run_in_executor(self._threads, viewer.make_context().run, self._answer, viewer, asked)

        return await self.semaphore.run(viewer.peer, answer, is_long=is_long)

    def close(self) -> None:
        """End the question that is answered, and turn away those that wait."""
        self._is_closed = True
        self.semaphore.close()
        for running in tuple(self._running):
            running.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answer(self, viewer: Viewer, asked: _Asked) -> ShownAnswer:
        # A node of its own for each, so that the end of one question ends no other.
        with closing(Node(self.node.home.folder, self.node.clock)) as node:
            node.engine_roles = self.node.engine_roles
            if viewer.inspects:
                node.warm = self.node.warm
                return self._run(node, node.engines, asked, None)
            own = EngineWorkspace(node.home.folder.engines), node.objects.rows, node.engine_files
            with closing(EngineHost(*own, roles=node.engine_roles)) as engines:
                return self._run(node, engines, asked, viewer)

    def _run(self, node: Node, host: EngineHost, asked: _Asked, viewer: Viewer | None) -> ShownAnswer:
        sql, as_of, engine, limits = asked
        records = None if viewer is None else list_named(node.store, viewer.reads)
        runner = QueryRunner(node.home, host)
        self._running.append(host)
        if self._is_closed:
            host.stop()
        try:
            # One row more than is shown tells whether there are more.
            answer = runner.run(sql, as_of=as_of, max_rows=MAX_ROWS + 1, engine=engine, records=records, limits=limits)
        finally:
            self._running.remove(host)
        table = answer.rows
        shown = table.slice(0, MAX_ROWS).select(range(min(MAX_COLUMNS, table.num_columns)))
        columns = [[shorten_cell(cell, CELL_CHARACTERS) for cell in column] for column in shown.columns]
        cells = tuple(zip(*columns, strict=True)) if columns else ()
        kinds = tuple(str(each.type) for each in shown.schema)
        return ShownAnswer(
            tuple(shown.schema.names), kinds, cells, answer.engine, table.num_rows > MAX_ROWS, table.num_columns
        )


QUERY_SERVICE: Final = web.AppKey("questions", PageQueries)


async def answer_query(query_service: PageQueries, viewer: Viewer, form: Mapping[str, str]) -> Page:
    """Answer the question of a form, or show an empty one."""
    sql, moment = form.get("query", ""), form.get("as_of", "").strip()
    engine, most = form.get("engine", QUERY_ENGINE)[:MAX_ENGINE_CHARACTERS], (MAX_ROWS, MAX_COLUMNS)
    engines = query_service.node.engines.list_answering_engines()
    values = {
        "query": sql, "as_of": moment, "engine": engine, "engines": engines, "answer": None, "lack": "", "most": most
    }  # fmt: skip
    if not sql.strip():
        return Page("sql.html", values)
    try:
        as_of = _parse_moment(moment) if moment else None
        found = await query_service.ask(viewer, sql, as_of, engine)
    except OdfError as error:
        return Page("sql.html", {**values, "lack": _explain(error)}, HTTPStatus.BAD_REQUEST)
    return Page("sql.html", {**values, "answer": found})


def _parse_moment(text: str) -> Timestamp:
    try:
        return Timestamp.parse_or_day(text)
    except MalformedError:
        raise MalformedError("time", expected="as 2020-10-01T12:00:00Z, or a date", found=repr(text[:40])) from None


def _explain(error: OdfError) -> str:
    """Say what is wrong with a question: an engine's own words where they are about it, and nothing about our disk."""
    if isinstance(error, InvalidQueryError | LimitExceededError | EngineMissingError):
        return str(error)
    return problem_of(error).detail
