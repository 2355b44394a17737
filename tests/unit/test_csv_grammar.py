import pytest

from odf_engines.ingest.csv_grammar import CsvDialect, iter_records, iter_spans

DIALECT = CsvDialect(b",", b'"', b"\\")


def fields(data: bytes, dialect: CsvDialect = DIALECT) -> list[tuple[bytes, ...]]:
    return [record.fields for record in iter_records(data, dialect)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"a,b\nc,d\n", [(b"a", b"b"), (b"c", b"d")], id="plain"),
        pytest.param(b"a,b", [(b"a", b"b")], id="no-line-end-at-the-end"),
        pytest.param(b"a,\n,b\n", [(b"a", b""), (b"", b"b")], id="empty-fields"),
        pytest.param(b"a,", [(b"a", b"")], id="separator-at-the-end"),
        pytest.param(b"a\r\nb\rc\n", [(b"a",), (b"b",), (b"c",)], id="three-kinds-of-line-ends"),
        pytest.param(b"a\n\n\r\nb", [(b"a",), (b"b",)], id="empty-lines-are-no-records"),
        pytest.param(b'""\n', [(b"",)], id="an-empty-quoted-field-is-a-record"),
        pytest.param(b'"a,b","c\nd"\n', [(b"a,b", b"c\nd")], id="separator-and-line-end-in-quotes"),
        pytest.param(b'"a""b"\n', [(b'a"b',)], id="doubled-quote"),
        pytest.param(b'"a\\"b\\\\c"\n', [(b'a"b\\c',)], id="escapes-in-quotes"),
        pytest.param(b"C:\\temp,5\n", [(b"C:\\temp", b"5")], id="a-backslash-outside-quotes-is-text"),
        pytest.param(b'5" pipe,a"b"\n', [(b'5" pipe', b'a"b"')], id="a-quote-inside-a-field-is-text"),
        pytest.param(b'"a"b,c\n', [(b"ab", b"c")], id="text-behind-a-closing-quote"),
        pytest.param(b"\xef\xbb\xbfa\n", [(b"a",)], id="byte-order-mark"),
        pytest.param(b"", [], id="empty-file"),
    ],
)
def test_records_are_split_as_the_grammar_says(data: bytes, expected: list[tuple[bytes, ...]]) -> None:
    assert fields(data) == expected


def test_without_escape_a_backslash_in_quotes_is_text() -> None:
    assert fields(b'"a\\",b\n', CsvDialect(b",", b'"', None)) == [(b"a\\", b"b")]


def test_other_characters_can_give_the_structure() -> None:
    assert fields(b"a;'b;c'\n", CsvDialect(b";", b"'", None)) == [(b"a", b"b;c")]


def test_file_that_ends_in_quotes_has_an_open_record() -> None:
    (record,) = iter_records(b'a,"b\nc', DIALECT)
    assert (record.fields, record.is_closed) == ((b"a", b"b\nc"), False)


def test_spans_hold_the_original_bytes_without_line_end() -> None:
    data = b'\xef\xbb\xbfa,"b\n""c"\r\n\nd,e'
    assert [data[start:end] for start, end in iter_spans(data, DIALECT)] == [b'a,"b\n""c"', b"d,e"]
