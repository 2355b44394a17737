"""The page on which questions are asked in SQL.

Source: clause PAGES-13 in ``spec/extensions/pages.md``.
"""

from collections.abc import Mapping
from http import HTTPStatus

from odf_engines.errors import EngineMissingError, InvalidQueryError, LimitExceededError
from odf_node.http.problems import problem_of
from odf_node.pages.questions import MOST_COLUMNS, MOST_ROWS, Questions
from odf_node.pages.rendering import Page
from odf_node.pages.visits import Viewer
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.timestamp import Timestamp


async def answer(questions: Questions, viewer: Viewer, form: Mapping[str, str]) -> Page:
    """Answer the question of a form, or show an empty one."""
    sql, moment = form.get("query", ""), form.get("as_of", "").strip()
    values = {"query": sql, "as_of": moment, "answer": None, "lack": "", "most": (MOST_ROWS, MOST_COLUMNS)}
    if not sql.strip():
        return Page("sql.html", values)
    try:
        as_of = _parse_moment(moment) if moment else None
        found = await questions.ask(viewer, sql, as_of)
    except OdfError as error:
        return Page("sql.html", {**values, "lack": _explain(error)}, HTTPStatus.BAD_REQUEST)
    return Page("sql.html", {**values, "answer": found})


def _parse_moment(text: str) -> Timestamp:
    try:
        return Timestamp.parse(f"{text}T00:00:00Z" if len(text) == len("2020-10-01") else text)
    except MalformedError:
        raise MalformedError("time", expected="as 2020-10-01T12:00:00Z, or a date", found=repr(text[:40])) from None


def _explain(error: OdfError) -> str:
    """Say what is wrong with a question: an engine's own words where they are about it, and nothing about our disk."""
    if isinstance(error, InvalidQueryError | LimitExceededError | EngineMissingError):
        return str(error)
    return problem_of(error).detail
