import pytest

from odf_engines.host.queries import quote_dotted_names

NAMES = ["countries.daily", "countries.daily__state", "plain", "a.b.c", "Sales.2020", "net-sales.q4", "2020.5"]


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
        pytest.param("FROM Countries.Daily__STATE", "FROM `countries.daily__state`", id="case"),
        pytest.param("FROM sales.2020 WHERE x > 0.5", "FROM `Sales.2020` WHERE x > 0.5", id="digits"),
        pytest.param("SELECT 2020.5", "SELECT 2020.5", id="number-that-is-a-name-too"),
        pytest.param("FROM net-sales.q4 s", "FROM `net-sales.q4` s", id="hyphen"),
        pytest.param("FROM countries.daily-x", "FROM countries.daily-x", id="beginning-of-a-longer-name"),
        pytest.param("SELECT 1-a.b.c.x", "SELECT 1-`a.b.c`.x", id="behind-a-minus"),
        pytest.param("(countries.daily.x)*a.b.c.y", "(`countries.daily`.x)*`a.b.c`.y", id="between-operators"),
        pytest.param("SELECT s.countries.daily", "SELECT s.countries.daily", id="path-that-only-ends-so"),
    ],
)
def test_dotted_names_of_tables_are_quoted_and_nothing_else(sql: str, expected: str) -> None:
    assert quote_dotted_names(sql, NAMES) == expected
