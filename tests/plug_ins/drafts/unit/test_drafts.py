"""A first manifest, guessed from data (ING-24)."""

import asyncio
import contextlib
import gzip
import io
import random
import tempfile
import zipfile
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from odf_drafts.dates import find_time_form
from odf_drafts.drafting import SAMPLE_BYTES, Drafting, decode
from odf_drafts.manifest_text import scalar
from odf_drafts.numbers import find_number_forms
from odf_drafts.samples import SampleReader
from odf_node.errors import UsageError
from odf_node.ports.sources import SourceNotFoundError, SourceUnavailableError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    AddPushSource,
    CompressionFormat,
    DataTypeOption,
    FetchStepUrl,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    PrepStepDecompress,
    ReadStepCsv,
    SetAttachments,
    SetPollingSource,
    SetVocab,
)
from odf_protocol.manifest import DatasetSnapshot
from support.http_server import serving
from support.manifests import parse_manifest

EXAMPLES = Path(__file__).parents[4] / "examples"


def draft(folder: Path, content: bytes | str, *, encoding: str | None = None, name: str = "data.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return draft_from(str(path), encoding=encoding)


def draft_from(source: str, *, encoding: str | None = None) -> str:
    drafting = Drafting(SampleReader())
    return asyncio.run(drafting.draft_from("a.b", source, encoding=encoding)).text


def parsed(text: str) -> DatasetSnapshot:
    return parse_manifest(text, source_name="draft")


def source_of(text: str) -> SetPollingSource | AddPushSource:
    return next(each for each in parsed(text).metadata if isinstance(each, SetPollingSource | AddPushSource))


def types_of(text: str) -> dict[str, str]:
    fields = source_of(text).read.schema.fields
    assert all(isinstance(field.type, DataTypeOption) for field in fields)
    return {field.name: type(field.type.inner).__name__.removeprefix("DataType") for field in fields}


def doubts_of(text: str) -> list[str]:
    return [line.strip().removeprefix("# ? ") for line in text.splitlines() if "# ? " in line]


def flowing(text: str) -> str:
    return " ".join(text.replace("#", " ").split())


def event_time_of(text: str) -> str | None:
    return next((each.event_time_column for each in parsed(text).metadata if isinstance(each, SetVocab)), None)


def converters_of(text: str) -> list[dict[str, object]]:
    attached = [each for each in parsed(text).metadata if isinstance(each, SetAttachments)]
    if not attached:
        return []
    (item,) = attached[0].attachments.items
    return list(yaml.safe_load(item.content)["converters"])


def test_published_file_is_polled_unpacked_and_keyed() -> None:
    text = draft_from(str(EXAMPLES / "covid/data/countries-aggregated-2020-10-01.csv.gz"))
    source = source_of(text)
    assert isinstance(source, SetPollingSource)
    assert source.prepare == (PrepStepDecompress(format=CompressionFormat.GZIP),)
    assert types_of(text) == {
        "Date": "Date",
        "Country": "String",
        "Confirmed": "Int64",
        "Recovered": "Int64",
        "Deaths": "Int64",
    }
    assert source.merge == MergeStrategySnapshot(primary_key=("Date", "Country"))
    assert event_time_of(text) == "Date"
    assert source.preprocess is None


def test_plain_file_is_handed_in() -> None:
    source = source_of(draft_from(str(EXAMPLES / "own-csv/prices-2026-03-05.csv")))
    assert isinstance(source, AddPushSource)
    assert source.merge == MergeStrategySnapshot(primary_key=("day", "product"))


MESSY = """Datum;Filiale;Artikel-Nr;Menge;Umsatz;Höhe
1.2.2024;Köln;00123;12;1.234,50;0,5
2.2.2024;Köln;00124;NA;99,00;1,25
2.2.2024;München;00123;3;17,25;
14.2.2024;Zürich;00125;;1.100,00;2,0
"""


def test_messy_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    text = draft(tmp_path, MESSY.encode("latin-1"))
    read = source_of(text).read
    assert isinstance(read, ReadStepCsv)
    assert (read.separator, read.encoding, read.date_format) == (";", "iso-8859-1", "%d.%m.%Y")
    assert types_of(text) == {
        "Datum": "Date",
        "Filiale": "String",
        "Artikel-Nr": "String",
        "Menge": "String",
        "Umsatz": "String",
        "Höhe": "String",
    }
    assert source_of(text).preprocess is None
    assert converters_of(text) == [
        {"kind": "Trim", "columns": ["Menge"], "nulls": ["NA"]},
        {"kind": "Cast", "column": "Menge", "type": "BIGINT"},
        {"kind": "Cast", "column": "Umsatz", "type": "DECIMAL(18,2)", "decimal": ",", "thousands": "."},
        {"kind": "Cast", "column": "Höhe", "type": "DECIMAL(18,2)", "decimal": ",", "thousands": "."},
    ]
    doubts = doubts_of(text)
    assert "not UTF-8; in iso-8859-1 a word reads 'Höhe', if that is wrong say --encoding NAME" in doubts
    assert "'NA' is taken for no value" in doubts
    assert "digits with leading zeros are kept as text" in doubts


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encoding_that_shows_itself_is_found(tmp_path: Path, encoding: str) -> None:
    text = draft(tmp_path, MESSY.encode(encoding))
    assert "Höhe" in types_of(text)
    assert not any("UTF-8" in doubt for doubt in doubts_of(text))


def test_encoding_that_somebody_knows_is_believed(tmp_path: Path) -> None:
    text = draft(tmp_path, "Дата,Город\n2020-01-01,Москва\n".encode("koi8-r"), encoding="koi8-r")
    assert list(types_of(text)) == ["Дата", "Город"]
    with pytest.raises(UsageError, match="--encoding latin-99: known are utf8, iso-8859-1"):
        draft(tmp_path, "a,b\n1,2\n", encoding="latin-99")


def test_text_in_no_western_language_is_doubted() -> None:
    found = decode("Дата,Город\n2020-01-01,Москва\n".encode("cp1251"), is_whole=True)
    assert found.doubt is not None
    assert "is no word; say it with --encoding" in found.doubt


def test_character_that_the_sample_cuts_is_no_reason_for_another_encoding() -> None:
    cut = "naïve Zoë".encode()[:-1]
    assert decode(cut, is_whole=False).encoding == "utf8"
    assert decode(cut, is_whole=True).encoding == "iso-8859-1"


@pytest.mark.parametrize(
    ("texts", "pattern", "other"),
    [
        (["2020-12-31", "2021-01-01"], "rfc3339", None),
        (["31/12/2020", "01/01/2021"], "%d/%m/%Y", None),
        (["12/31/2020", "01/01/2021"], "%m/%d/%Y", None),
        (["01/02/2020", "02/02/2020", "03/02/2020"], "%d/%m/%Y", "%m/%d/%Y"),
        (["01/02/2020", "01/03/2020", "01/04/2020"], "%m/%d/%Y", "%d/%m/%Y"),
        (["1.2.2020", "2.2.2020"], "%d.%m.%Y", None),
        (["05/05/2020", "06/06/2020"], "%d/%m/%Y", None),
        (["20200131", "20200201", "20200202"], "%Y%m%d", None),
        (["31.12.20 23:59", "1.1.21 0:00"], "%d.%m.%y %H:%M", None),
        (["2020-12-31T23:59:59Z"], "rfc3339", None),
        (["2020-12-31 23:59"], "%Y-%m-%d %H:%M", None),
        (["2020-12-31T23:59:59.5+0100"], "%Y-%m-%dT%H:%M:%S.%f%z", None),
    ],
)
def test_days_and_times_are_recognised(texts: list[str], pattern: str, other: str | None) -> None:
    form = find_time_form(texts)
    assert form is not None
    assert (form.pattern, form.other) == (pattern, other)


@pytest.mark.parametrize(
    "texts", [["31/02/2020"], ["1.234"], ["20201341"], ["abc"], ["2020"], ["2020-01-01", "soon"], ["12345678"]]
)
def test_what_is_no_day_is_not_taken_for_one(texts: list[str]) -> None:
    assert find_time_form(texts) is None


def test_days_that_are_written_in_several_ways_are_all_read(tmp_path: Path) -> None:
    days = ["1.2.2026", "02.02.2026", "2026-02-03", "4/2/2026", "2026-02-05", "6.2.2026", "31.2.2026"]
    text = draft(tmp_path, "day;n\n" + "".join(f"{day};{n}\n" for n, day in enumerate(days)))
    patterns = ["%d.%m.%Y", "%Y-%m-%d", "%d/%m/%Y"]
    assert converters_of(text) == [{"kind": "Cast", "column": "day", "type": "DATE", "formats": patterns}]
    assert event_time_of(text) == "day"
    assert f"written in several ways; of {', '.join(patterns)} the first that gives a day is taken" in flowing(text)
    assert "1 record would go to quarantine: there is no day '31.2.2026'" in flowing(text)


@pytest.mark.parametrize("odd", ["soon", "1.2", "31.2.2026 8:00"])
def test_text_that_has_the_form_of_no_day_keeps_a_column_text(odd: str) -> None:
    assert find_time_form(["1.2.2026", "2.2.2026", "2026-02-03", "2026-02-04", odd]) is None


def test_day_and_month_that_could_be_each_other_are_doubted(tmp_path: Path) -> None:
    text = draft(tmp_path, "day,n\n01/02/2020,5\n02/02/2020,6\n")
    assert "read as %d/%m/%Y; %m/%d/%Y would fit as well" in doubts_of(text)


@pytest.mark.parametrize(
    ("texts", "decimal", "group", "scale"),
    [
        ({"1", "-20"}, ".", "", 0),
        ({"1.5", "2"}, ".", "", 1),
        ({"1,5", "2"}, ",", "", 1),
        ({"1.234,5", "2"}, ",", ".", 1),
        ({"1,234.5", "2"}, ".", ",", 1),
        ({"1 234,50", "2,25"}, ",", " ", 2),
        ({"1'234.50"}, ".", "'", 2),
    ],
)
def test_numbers_are_recognised(texts: set[str], decimal: str, group: str, scale: int) -> None:
    form = find_number_forms(texts)[0]
    assert (form.decimal, form.group, form.scale) == (decimal, group, scale)


@pytest.mark.parametrize("texts", [{"01234"}, {"1,2,3"}, {"1.2.3"}, {"12a"}, {""}, {"1.234,5", "1,234.5"}, set()])
def test_what_is_no_number_is_not_taken_for_one(texts: set[str]) -> None:
    assert find_number_forms(texts) == []


def test_mark_that_could_be_either_follows_the_columns_that_show_it(tmp_path: Path) -> None:
    alone = draft(tmp_path, "id;a\n1;1.234\n2;2.500\n")
    assert "a point is taken for the decimal mark; it could stand between thousands" in doubts_of(alone)
    beside = draft(tmp_path, "id;a;b\n1;1.234;0,5\n2;2.500;1,75\n")
    assert {"kind": "Cast", "column": "a", "type": "BIGINT", "decimal": ",", "thousands": "."} in converters_of(beside)
    assert not any("thousands" in doubt for doubt in doubts_of(beside))


def test_last_record_that_is_a_total_leaves_the_types_and_the_key_alone(tmp_path: Path) -> None:
    rows = "".join(f"0{day}.01.2024;{item};1.20{day};{day},50\n" for day in range(1, 5) for item in ("a", "b"))
    text = draft(tmp_path, f"day;item;count;price\n{rows}Summe:;;9.999;1.234,56\n")
    assert types_of(text) == {"day": "String", "item": "String", "count": "String", "price": "String"}
    assert converters_of(text)[0] == {"kind": "LeaveOut", "column": "day", "values": ["Summe:"]}
    assert any("begins with 'Summe:' and is taken for a total" in each for each in doubts_of(text))
    assert "primaryKey: [day, item]" in text
    casts = {each["column"]: each for each in converters_of(text) if each["kind"] == "Cast"}
    assert casts["day"] == {"kind": "Cast", "column": "day", "type": "DATE", "formats": ["%d.%m.%Y"]}
    assert (casts["count"]["type"], casts["count"]["thousands"]) == ("BIGINT", ".")
    assert (casts["price"]["decimal"], casts["price"]["thousands"]) == (",", ".")  # as the other column shows


def test_record_that_is_no_total_counts(tmp_path: Path) -> None:
    text = draft(tmp_path, "item;count\na;1\nb;2\nc;3\nsummer;4\nsummary;x\n")
    assert not any("total" in each for each in doubts_of(text))
    assert any("'x'" in each for each in doubts_of(text))


def test_lines_without_a_separator_say_so_and_what_they_may_be(tmp_path: Path) -> None:
    text = draft(tmp_path, "00001Bern    1.50\n00002Basel  12.25\n00003Chur    7.00\n")
    assert any("no separator was found" in each for each in doubts_of(text))
    assert "All have 17 characters" in flowing(text)
    assert "the reader FixedWidth their places: spec/readers.md begins with an example" in flowing(text)
    text = draft(tmp_path, "city\nBern\nBasel\n", name="cities.csv")
    assert any("no separator was found" in each for each in doubts_of(text))
    assert "FixedWidth" not in text


def test_file_without_header_gets_names(tmp_path: Path) -> None:
    text = draft(tmp_path, "2020-01-01,Oslo,5\n2020-01-02,Rome,6\n")
    read = source_of(text).read
    assert isinstance(read, ReadStepCsv)
    assert read.header is False
    assert types_of(text) == {"column_1": "Date", "column_2": "String", "column_3": "Int64"}


def test_header_over_text_alone_is_doubted(tmp_path: Path) -> None:
    text = draft(tmp_path, "city,country\nOslo,Norway\nRome,Italy\n")
    assert list(types_of(text)) == ["city", "country"]
    assert any("whether the first record names the columns is a guess" in doubt for doubt in doubts_of(text))


def test_columns_that_tell_no_rows_apart_are_no_key(tmp_path: Path) -> None:
    text = draft(tmp_path, "day,city,n\n2020-01-01,Oslo,5\n2020-01-01,Oslo,6\n")
    assert source_of(text).merge == MergeStrategyAppend()
    assert any("no columns tell all rows apart" in doubt for doubt in doubts_of(text))


def test_measurement_that_is_unique_by_chance_is_no_key(tmp_path: Path) -> None:
    text = draft(tmp_path, "amount,day,city\n5.25,2020-01-01,Oslo\n6.75,2020-01-01,Rome\n7.00,2020-01-02,Oslo\n")
    assert source_of(text).merge == MergeStrategySnapshot(primary_key=("day", "city"))


@pytest.mark.parametrize(
    ("name", "first", "expected"),
    [
        ("N° commande", (7, 3, 9), ("N° commande",)),
        ("Bestellung", (4, 5, 6), ("Bestellung",)),
        ("Bestellung", (7, 3, 9), ("day", "city")),
    ],
)
def test_number_that_is_called_so_or_counts_the_rows_is_the_key(
    tmp_path: Path, name: str, first: tuple[int, ...], expected: tuple[str, ...]
) -> None:
    numbers = [*first, *range(10, 20)]
    rows = "".join(f"{number},2020-01-{day:02d},Oslo\n" for day, number in enumerate(numbers, 1))
    text = draft(tmp_path, f"{name},day,city\n{rows}{numbers[-1] + 1},2020-01-01,Rome\n")
    assert source_of(text).merge == MergeStrategySnapshot(primary_key=expected)


def test_names_of_system_columns_get_others(tmp_path: Path) -> None:
    text = draft(tmp_path, "id,op,offset\n1,x,5\n2,y,6\n")
    assert converters_of(text) == [{"kind": "Rename", "columns": {"op": "_op", "offset": "_offset"}}]


def test_large_file_is_read_in_part_and_says_so(tmp_path: Path) -> None:
    line = f"{'x' * 1000},1.5\n"
    text = draft(tmp_path, "id,x,w\n" + "".join(f"{number},{line}" for number in range(2 * SAMPLE_BYTES // 1000)))
    assert "its first 4,1" in flowing(text)
    assert types_of(text) == {"id": "Int64", "x": "String", "w": "Decimal"}


def test_archive_of_several_files_says_which_one(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("README", "x\n")
        archive.writestr("__MACOSX/a.csv", "x" * 100)
        archive.writestr("a.csv", "id,n\n1,2\n")
    text = draft(tmp_path, packed.getvalue(), name="data.zip")
    source = source_of(text)
    assert isinstance(source, SetPollingSource)
    assert source.prepare == (PrepStepDecompress(format=CompressionFormat.ZIP, sub_path="a.csv"),)


def test_archive_that_unpacks_to_very_much_costs_no_more_than_its_beginning(tmp_path: Path) -> None:
    bomb = gzip.compress(b"id,n\n" + b"1,2\n" * 30_000_000, compresslevel=1)
    assert "its first 99,999 records" in flowing(draft(tmp_path, bomb, name="data.csv.gz"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('{"id": 1, "t": "2020-01-01T00:00:00Z"}\n{"id": 2, "t": null}\n', "NdJson"),
        ('[{"id": 1, "t": "2020-01-01T00:00:00Z"}, {"id": 2}]', "Json"),
        ('{"meta": {"x": [{"id": 7}]}, "rows": [{"id": 1, "t": "2020-01-01T00:00:00Z"}]}', "Json"),
        (
            '{"type": "FeatureCollection", "features": [{"properties": {"id": 1, "t": "2020-01-01T00:00:00Z"}}]}',
            "GeoJson",
        ),
        ('{"type": "Feature", "properties": {"id": 1, "t": "2020-01-01T00:00:00Z"}}\n' * 2, "NdGeoJson"),
    ],
)
def test_json_of_every_kind_is_recognised(tmp_path: Path, content: str, kind: str) -> None:
    text = draft(tmp_path, content, name="data.json")
    read = source_of(text).read
    assert type(read).__name__ == f"ReadStep{kind}"
    assert {"id": "Int64", "t": "Timestamp"}.items() <= types_of(text).items()
    assert getattr(read, "sub_path", None) == ("rows" if "rows" in content else None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"\0\1\2\3" * 400, "bytes that are no text"),
        (b"PAR1....", "a Parquet file"),
        (b"\xd0\xcf\x11\xe0....", "an old Excel workbook"),
        (b"BZh9....", "bzip2"),
        (b"\x1f\x8bxxxxxxxx", "gzip"),
        (b"PK\x03\x04xxxxxxx", "zip"),
        (b"a,a\n1,2\n3,4\n", "'a' twice"),
        (b"a,\n1,2\n3,4\n", "a name for each column"),
    ],
)
def test_what_nothing_can_be_guessed_from_is_rejected_with_the_reason(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises((MalformedError, UnsupportedError), match=message):
        draft(tmp_path, content)


def test_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no such file"):
        draft_from(str(tmp_path / "no.csv"))


@pytest.fixture
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_no_proxy")
def test_file_of_a_server_is_polled_and_a_key_in_its_address_is_pointed_at() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(b"day,n\n2024-01-01,5\n2024-01-02,6\n"))

    async def run() -> tuple[str, str]:
        async with serving(answer) as server:
            url = f"{server.base}/a.csv.gz?key=secret"
            drafted = await Drafting(SampleReader()).draft_from("a.b", url)
            return url, drafted.text

    url, text = asyncio.run(run())
    source = source_of(text)
    assert isinstance(source, SetPollingSource)
    assert source.fetch == FetchStepUrl(url=url)
    assert source.prepare == (PrepStepDecompress(format=CompressionFormat.GZIP),)
    assert any("a key in this address is published" in doubt for doubt in doubts_of(text))
    assert "secret" not in text.replace(url, "")


@pytest.mark.usefixtures("_no_proxy")
def test_server_that_never_ends_is_left_after_the_beginning() -> None:
    """Attack: an answer without end."""
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"day,n\n")
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"2024-01-01," + b"5" * 16_000 + b"\n")
                sent += 16_000
        return response

    async def run() -> str:
        async with serving(answer) as server:
            return (await Drafting(SampleReader()).draft_from("a.b", f"{server.base}/a")).text

    assert "its first" in flowing(asyncio.run(run()))
    assert sent < 10 * SAMPLE_BYTES


@pytest.mark.usefixtures("_no_proxy")
@pytest.mark.parametrize(("status", "error"), [(404, SourceNotFoundError), (503, SourceUnavailableError)])
def test_server_without_the_file_is_told(status: int, error: type[Exception]) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status)

    async def run() -> None:
        async with serving(answer) as server:
            await Drafting(SampleReader()).draft_from("a.b", f"{server.base}/a")

    with pytest.raises(error, match=str(status)):
        asyncio.run(run())


def test_names_in_a_file_stay_names(tmp_path: Path) -> None:
    """Attack: a header that ends its line in the manifest, and goes on with an event of its own."""
    evil = 'a: ]\n    - kind: SetLicense\n# x"\\\u2028}'
    quoted = '"' + evil.replace('"', '""') + '"'
    text = draft(tmp_path, f"id,{quoted},`b`,{{c}}\n1,NA,3,4\n2,5,6,7\n")
    assert list(types_of(text)) == ["id", evil, "`b`", "{c}"]
    assert [type(each).__name__ for each in parsed(text).metadata] == ["SetInfo", "AddPushSource", "SetAttachments"]
    assert [(each["kind"], each.get("column") or each["columns"]) for each in converters_of(text)] == [
        ("Trim", [evil]),
        ("Cast", evil),
    ]


def test_text_among_numbers_is_named_with_what_would_make_numbers_of_the_others(tmp_path: Path) -> None:
    text = draft(tmp_path, 'id;n\n1;"1.234,50"\n2;6,25\n3;7,10\n4;zwei\n5;8,00\n')
    assert types_of(text)["n"] == "String"
    cast = '{"kind": "Cast", "column": "n", "type": "DECIMAL(18,2)", "decimal": ",", "thousands": "."}'
    assert f"text because of 'zwei'; the converter {cast} makes numbers" in flowing(text)


def test_figure_in_no_way_is_named_as_a_word_among_numbers_is(tmp_path: Path) -> None:
    text = draft(tmp_path, 'id;n\n1;"1.234,50"\n2;6,25\n3;7,10\n4;12,5,0\n5;8,00\n')
    cast = '{"kind": "Cast", "column": "n", "type": "DECIMAL(18,2)", "decimal": ",", "thousands": "."}'
    assert f"text because of '12,5,0'; the converter {cast} makes numbers" in flowing(text)
    assert not any("text because" in each for each in doubts_of(draft(tmp_path, "id,n\n1,1.2.3\n2,1.4\n3,2.0.1\n")))


def test_words_in_a_file_end_no_comment(tmp_path: Path) -> None:
    """Attack: a value that is quoted in a doubt."""
    evil = "x\n    - kind: SetLicense\u2028\x85"
    text = draft(tmp_path, f'id,n\n1,5\n2,6\n3,7\n4,"{evil}"\n')
    assert any("text because of" in doubt for doubt in doubts_of(text))
    assert [type(each).__name__ for each in parsed(text).metadata] == ["SetInfo", "AddPushSource", "SetAttachments"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20))
def test_any_name_is_read_as_itself(name: str) -> None:
    text = (
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: a\n  kind: Root\n  metadata:\n    - kind: SetInfo\n"
        f"      description: {scalar(name)}\n"
    )
    assert parsed(text).metadata[0].description == name


@given(st.binary(max_size=300))
def test_any_bytes_give_a_draft_or_a_rejection(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(MalformedError, UnsupportedError):
        parsed(draft(Path(folder), content))


def test_any_table_gives_a_draft_that_names_its_columns(tmp_path: Path) -> None:
    random.seed(7)
    values = ["", "1", "1,5", "1.234,00", "x", "NA", "2020-01-01", "01/02/2020", "true", "007", " 5 ", "a;b", "'", "€"]
    for number in range(150):
        width, separator = random.randint(2, 5), random.choice(",;\t|")
        rows = [
            [random.choice(values).replace(separator, "") for _ in range(width)] for _ in range(random.randint(1, 9))
        ]
        header = [f"c{place} {separator == ';'}" for place in range(width)]
        content = "\n".join(separator.join(row) for row in [header, *rows])
        text = draft(tmp_path, content, name=f"{number}.csv")
        assert list(types_of(text)) == header, content
