"""Texts in double quotes, which may be meant for names of columns (QUERY-13)."""

import pytest

from odf_engines.dialects.queries import find_double_quoted_texts


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('SELECT "Filiale" FROM sales', ["Filiale"]),
        ('SELECT "filiale", "Filiale", "filiale" FROM sales WHERE n = 1', ["filiale", "Filiale"]),
        ("SELECT 'Filiale', `Filiale` FROM sales", []),
        ('SELECT \'"Filiale"\' FROM sales -- "n"', []),
    ],
)
def test_text_in_double_quotes_is_found_query_13(sql: str, found: list[str]) -> None:
    assert find_double_quoted_texts(sql, "spark") == found


def test_name_in_double_quotes_is_a_name_where_the_sql_says_so_query_13() -> None:
    assert find_double_quoted_texts('SELECT "Filiale" FROM sales', "datafusion") == []


def test_question_that_the_library_cannot_read_has_none_query_13() -> None:
    assert find_double_quoted_texts("SELECT 'n", "spark") == []
