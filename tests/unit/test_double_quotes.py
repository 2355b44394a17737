"""Texts in double quotes that are called like columns (QUERY-13)."""

import pytest

from odf_engines.dialects.double_quotes import find_texts_like_names

COLUMNS = ("Filiale", "n")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('SELECT "Filiale" FROM sales', ["Filiale"]),
        ('SELECT "filiale", "Filiale", "filiale" FROM sales WHERE n = 1', ["filiale", "Filiale"]),
        ("SELECT 'Filiale', `Filiale` FROM sales", []),
        ('SELECT \'"Filiale"\' FROM sales -- "n"', []),
        ('SELECT "Ort" FROM sales', []),
    ],
)
def test_text_in_double_quotes_that_is_called_like_a_column_is_found_query_13(sql: str, found: list[str]) -> None:
    assert find_texts_like_names(sql, "spark", COLUMNS) == found


def test_name_in_double_quotes_is_a_name_where_the_sql_says_so_query_13() -> None:
    assert find_texts_like_names('SELECT "Filiale" FROM sales', "datafusion", COLUMNS) == []
