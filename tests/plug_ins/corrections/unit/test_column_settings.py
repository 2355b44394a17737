"""What ``--set COLUMN=SQL`` takes (QUAR-4)."""

import pytest

from odf_corrections.column_settings import read_settings
from odf_node.errors import UsageError


@pytest.mark.parametrize("word", ["id=CAST(1 AS INT), v=2", "id=(1, 2)", "id=((1, v))", "id=1, 2"])
def test_two_values_for_one_column_are_rejected(word: str) -> None:
    """An engine takes them for one value of two members, which was written as ``{1, false}``."""
    with pytest.raises(UsageError, match="expected one expression; give --set once for each column"):
        read_settings([word], example="v=1")


@pytest.mark.parametrize(
    "sql", ["coalesce(a, 1, 2)", "'a, b'", "CASE WHEN a IN (1, 2) THEN 1 END", "(a + 1)", "struct(1, 2)", "no sql at ("]
)
def test_one_expression_is_taken_as_it_is(sql: str) -> None:
    assert read_settings([f"id={sql}"], example="v=1") == {"id": sql}
