"""Clause GATE-15: how long and how deep a query may be, told from its text alone and in one pass."""

import time
from contextlib import suppress

import pytest

from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_bounds import (
    MAX_CHARACTERS,
    MAX_LEVELS,
    MAX_STEPS,
    MAX_TOKENS,
    check_query_bounds,
    check_transform_bounds,
)
from odf_protocol.events import SqlQueryStep, TransformSql

N = MAX_LEVELS

AT_THE_BOUND = {
    "brackets": "SELECT " + "(" * N + "1" + ")" * N,
    "brackets-one-after-the-other": "SELECT " + ", ".join(["(1)"] * 2000),
    "places": "SELECT a" + "[" * N + "0" + "]" * N,
    "cases": "SELECT " + "CASE WHEN a THEN " * N + "1" + " END" * N,
    "comments": "SELECT 1 " + "/*" * N + "*/" * N,
    "hints-inside-a-comment-are-none": "SELECT 1 /*" + " /*+" * 500 + "*/",
    "brackets-in-text": "SELECT '" + "(" * 500 + "', \"" + "(" * 500 + '"',
    "brackets-in-a-quoted-text": r"SELECT 'it''s \' " + "(" * 500 + "'",
    "brackets-in-a-raw-text": r"SELECT r'\' || 1 AS " + "`" + "(" * 500 + "`",
    "brackets-in-a-name": "SELECT 1 AS ```" + "(" * 500 + "`",
    "brackets-in-a-comment": "SELECT 1 /* '" + "(" * 500 + " */ -- `" + "(" * 500 + "\\\n" + "(" * 500,
    "words": "SELECT a" + ", a" * (MAX_TOKENS // 2 - 1),
    "characters": "SELECT '" + "a" * (MAX_CHARACTERS - 9) + "'",
    "closed-too-often": ")" * 500 + "(" * N,
}

BEYOND = {
    "brackets": ("SELECT " + "(" * (N + 1) + "1", f"at most {N} brackets"),
    "brackets-and-cases": ("SELECT " + "(CASE " * (N // 2 + 1), f"at most {N} brackets"),
    "cases-in-any-spelling": ("SELECT " + "cAsE " * (N + 1), f"at most {N} brackets"),
    "places": ("SELECT a" + "[a" * (N + 1), f"at most {N} brackets"),
    "comments": ("SELECT 1 " + "/*" * (N + 1), f"at most {N} brackets"),
    "brackets-after-an-escaped-end-of-text": (r"SELECT '\\', " + "(" * (N + 1), f"at most {N} brackets"),
    "brackets-after-a-raw-text": (r"SELECT r'\', " + "(" * (N + 1), f"at most {N} brackets"),
    "brackets-after-a-comment-line": ("SELECT -- '\r" + "(" * (N + 1), f"at most {N} brackets"),
    "brackets-after-a-hint": ("SELECT /*+ " + "(" * (N + 1), f"at most {N} brackets"),
    "signs": ("SELECT " + "-" + " -" * MAX_TOKENS, f"at most {MAX_TOKENS} words"),
    "characters": ("SELECT '" + "a" * MAX_CHARACTERS + "'", f"at most {MAX_CHARACTERS} characters"),
    "text-without-end": ("SELECT 'a", "opens something at character 8"),
    "text-whose-end-is-escaped": (r"SELECT 'a\'", "opens something at character 8"),
    "name-without-end": ("SELECT `a``", "opens something at character 8"),
    "comment-without-end": ("SELECT 1 /* /* */", "opens a comment at character 11"),
    "half-a-character": ("SELECT '\ud800'", "half a character, '.ud800', at character 9"),
    "text-in-dollars": ("SELECT $a$ ' $a$", "opens something"),
}


@pytest.mark.parametrize("sql", AT_THE_BOUND.values(), ids=AT_THE_BOUND)
def test_query_at_the_bound_is_let_through(sql):
    check_query_bounds(sql)


@pytest.mark.parametrize(("sql", "stated"), BEYOND.values(), ids=BEYOND)
def test_query_beyond_a_bound_is_invalid_and_the_bound_is_said(sql, stated):
    with pytest.raises(InvalidQueryError, match=stated):
        check_query_bounds(sql)


def test_steps_of_one_transform_share_the_bounds():
    half = "SELECT a" + ", a" * (MAX_TOKENS // 4)
    check_query_bounds(half)
    with pytest.raises(InvalidQueryError, match=f"at most {MAX_TOKENS} words"):
        check_transform_bounds(TransformSql(engine="spark", queries=(SqlQueryStep(query=half),) * 2))
    with pytest.raises(InvalidQueryError, match=f"at most {MAX_STEPS} queries, found {MAX_STEPS + 1}"):
        check_transform_bounds(
            TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT 1"),) * (MAX_STEPS + 1))
        )
    with pytest.raises(InvalidQueryError, match=f"at most {MAX_LEVELS} brackets"):
        check_transform_bounds(TransformSql(engine="spark", query="(" * (MAX_LEVELS + 1)))


@pytest.mark.parametrize(
    "part", ["'", r"'\'", "''", '"', "`", "r'", "/*", "*/", "--", "\\", "$", "$a$", "a", " ", "/*+"]
)
def test_no_text_takes_longer_than_its_length(part):
    started = time.process_time()
    with pytest.raises(InvalidQueryError):
        check_query_bounds("SELECT (" + part * (MAX_CHARACTERS // len(part)) + ("(" * MAX_CHARACTERS))
    for sql in (part * (MAX_CHARACTERS // len(part)), "'" + part * 10_000, "/*" + part * 10_000):
        with suppress(InvalidQueryError):
            check_query_bounds(sql)
    assert time.process_time() - started < 2.0  # measured: 0.03 s; what is quadratic takes minutes


def test_engine_without_escapes_reads_texts_as_the_standard_does():
    check_query_bounds(r"SELECT '\', " + "(" * N + ")" * N, has_escapes=False)
    check_query_bounds("SELECT '\\', '" + "(" * 500 + "', $a$ x $a$", has_escapes=False)
    for sql in (r"SELECT '\', " + "(" * (N + 1), "SELECT 'it''s', /* /* ' */ */ \"'\", " + "[" * (N + 1)):
        with pytest.raises(InvalidQueryError, match=f"at most {N} brackets"):
            check_query_bounds(sql, has_escapes=False)
