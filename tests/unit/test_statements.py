"""Clause QUERY-9: where statements end."""

import pytest

from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_tokens import split_statements

TEXTS = {
    "one": ("SELECT 1", (), "SELECT 1"),
    "ended": ("SELECT 1 ;\n", ("SELECT 1",), ""),
    "several": ("a;b ; c", ("a", "b"), "c"),
    "empty": (" ;; -- x;\n/* ; */", (), ""),
    "text": ("SELECT 'it''s; so'; b", ("SELECT 'it''s; so'",), "b"),
    "name": ("SELECT `a;b`; b", ("SELECT `a;b`",), "b"),
    "comments": ("a -- ; no\n; b /* ; */ ; c", ("a -- ; no", "b /* ; */"), "c"),
    "letters": ("SELECT 'ä€😀;' ; b", ("SELECT 'ä€😀;'",), "b"),
}


@pytest.mark.parametrize("engine", ["spark", "datafusion", "another"])
@pytest.mark.parametrize("name", TEXTS)
def test_semicolon_in_a_quote_or_comment_ends_nothing_query_9(name: str, engine: str) -> None:
    text, ended, rest = TEXTS[name]
    found = split_statements(text, engine)
    assert (found.ended, found.rest) == (ended, rest)


def test_backslash_means_what_it_means_to_the_engine_query_9() -> None:
    text = r"SELECT '\'; b"
    assert split_statements(text, "datafusion").ended == (r"SELECT '\'",)
    with pytest.raises(InvalidQueryError):
        split_statements(text, "spark")
    assert split_statements(r"SELECT '\';'; b", "spark").ended == (r"SELECT '\';'",)


@pytest.mark.parametrize("text", ["SELECT 'a;", "SELECT `a;", 'SELECT "a;'])
def test_quote_that_does_not_end_is_told_query_9(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="does not end"):
        split_statements(text, "spark")
