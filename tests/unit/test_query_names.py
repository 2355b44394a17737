import pytest

from odf_engines.spark.query_names import quote_dotted_names

NAMES = ["countries.daily", "countries.daily__state", "plain", "a.b.c"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT * FROM countries.daily", "SELECT * FROM `countries.daily`", id="table"),
        pytest.param("SELECT countries.daily.x FROM t", "SELECT `countries.daily`.x FROM t", id="column-of-table"),
        pytest.param("FROM countries.daily__state", "FROM `countries.daily__state`", id="longer-name-wins"),
        pytest.param("FROM a.b.c x, a.b y", "FROM `a.b.c` x, a.b y", id="only-whole-names"),
        pytest.param("FROM `countries.daily`", "FROM `countries.daily`", id="quoted-already"),
        pytest.param("SELECT 'countries.daily'", "SELECT 'countries.daily'", id="text"),
        pytest.param("SELECT 'a''b' FROM countries.daily", "SELECT 'a''b' FROM `countries.daily`", id="quote-in-text"),
        pytest.param("-- countries.daily\nSELECT 1", "-- countries.daily\nSELECT 1", id="line-comment"),
        pytest.param("/* countries.daily */ SELECT 1", "/* countries.daily */ SELECT 1", id="block-comment"),
        pytest.param("SELECT xcountries.daily", "SELECT xcountries.daily", id="end-of-a-longer-name"),
        pytest.param("SELECT s.countries.daily", "SELECT s.countries.daily", id="path-that-only-ends-so"),
    ],
)
def test_dotted_names_of_tables_are_quoted_and_nothing_else(sql: str, expected: str) -> None:
    assert quote_dotted_names(sql, NAMES) == expected
