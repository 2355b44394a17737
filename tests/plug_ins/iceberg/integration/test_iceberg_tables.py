"""Datasets read as Iceberg tables by pyiceberg, over real sockets (ICEBERG-1 to ICEBERG-12)."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from odf_iceberg import tables
from odf_iceberg.versions import snapshot_id_of
from odf_protocol import events as odf
from odf_protocol.events import SetDataSchema
from odf_protocol.schema_arrow import arrow_schema_of
from support.event_loop import in_loop
from support.iceberg_node import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    KEY,
    corrected_chain,
    create_node,
    in_thread,
    keep,
    open_table,
    read_table,
)
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, root_chain, slice_table
from support.secretive_node import FRIEND_TOKEN, SecretiveNode


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = create_node(tmp_path)
    with closing(made.node):
        yield made


CURRENT = [
    {("Oslo", 717_710), ("Rome", 2_800_000), ("Vaduz", 5_600)},
    {("Oslo", 717_710), ("Rome", 3)},
    {("Oslo", 717_710), ("Rome", 3)},
]
COUNTS = [3, 3, 2]


def cities_of(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(row["city"], row["people"]) for row in rows}


@in_loop
async def test_dataset_of_appends_is_read_as_it_is_iceberg_2(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        assert await read_table(stranger.url, "shown.data") == [
            {"event_time": datetime.fromisoformat(f"{NOON}"), "city": "Bern", "people": 3}
        ]
        (change,) = await read_table(stranger.url, "SHOWN.data__changes")
        assert (change["offset"], change["op"], change["city"]) == (0, APPEND, "Bern")


@in_loop
async def test_corrected_dataset_shows_current_rows_at_every_version_iceberg_5_iceberg_8(made: SecretiveNode) -> None:
    chain = corrected_chain(made)
    ids = [snapshot_id_of(block.hash) for block in chain.blocks[2:]]
    async with made.served() as stranger:
        for snapshot, cities, count in zip(ids, CURRENT, COUNTS, strict=True):
            found = await read_table(stranger.url, "shop.cities", snapshot)
            assert (cities_of(found), len(found)) == (cities, count)
        assert cities_of(await read_table(stranger.url, "shop.cities")) == CURRENT[-1]
        assert len(await read_table(stranger.url, "shop.cities__changes", ids[1])) == 7
        assert len(await read_table(stranger.url, "shop.cities__changes")) == 8
        table = await in_thread(lambda: open_table(stranger.url, "shop.cities"))
        operations = [each.summary.operation.value for each in table.snapshots() if each.summary]
        assert operations == ["append", "overwrite", "overwrite"]
        assert [each.summary["odf.block"] for each in table.snapshots() if each.summary] == [
            str(block.hash) for block in chain.blocks[2:]
        ]
        at = table.snapshots()[1].timestamp_ms
        found_at = table.snapshot_as_of_timestamp(at)
        assert found_at is not None
        assert found_at.snapshot_id == ids[1]


@in_loop
async def test_filters_and_chosen_columns_are_applied_iceberg_2(made: SecretiveNode) -> None:
    corrected_chain(made)
    async with made.served() as stranger:

        def read() -> list[dict[str, Any]]:
            table = open_table(stranger.url, "shop.cities")
            return list(table.scan("people > 3", selected_fields=("city",)).to_arrow().to_pylist())

        assert await in_thread(read) == [{"city": "Oslo"}, {"city": "Oslo"}][:1]


@in_loop
async def test_versions_of_many_blocks_are_in_groups_iceberg_6(
    made: SecretiveNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_FILES", 2)
    chain = root_chain(made.hidden.folder, slices=0, key=KEY, name="many")
    for number in range(6):
        chain.add_rows([(f"city {number}", number)])
    keep(made, chain)
    ids = [snapshot_id_of(block.hash) for block in chain.blocks[2:]]
    async with made.served() as stranger:
        for number, snapshot in enumerate(ids):
            for name in ("many", "many__changes"):
                found = await read_table(stranger.url, name, snapshot)
                assert cities_of(found) == {(f"city {each}", each) for each in range(number + 1)}

        def count_manifests() -> list[int]:
            table = open_table(stranger.url, "many")
            return [len(each.manifests(table.io)) for each in table.snapshots()]

        assert await in_thread(count_manifests) == [1, 2, 2, 3, 3, 4]


@in_loop
async def test_files_of_which_every_row_has_ended_are_not_opened_iceberg_6(
    made: SecretiveNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_FILES", 2)
    chain = root_chain(made.hidden.folder, slices=0, key=KEY, name="updated")
    chain.add_rows([("Oslo", 0), ("Bern", 0)], event_time=[NOON.unix_ms] * 2)
    for number in range(1, 7):
        chain.add_rows(
            [("Oslo", number - 1), ("Oslo", number)], op=[CORRECT_FROM, CORRECT_TO], event_time=[NOON.unix_ms] * 2
        )
    keep(made, chain)
    ids = [snapshot_id_of(block.hash) for block in chain.blocks[2:]]
    async with made.served() as stranger:
        for number, snapshot in enumerate(ids):
            found = await read_table(stranger.url, "updated", snapshot)
            assert (cities_of(found), len(found)) == ({("Bern", 0), ("Oslo", number)}, 2)
            assert len(await read_table(stranger.url, "updated__changes", snapshot)) == 2 + 2 * number

        def count_files() -> list[int]:
            table = open_table(stranger.url, "updated")
            return [len(list(table.scan(snapshot_id=each).plan_files())) for each in ids]

        assert await in_thread(count_files) == [1, 2, 2, 2, 2, 2, 2]


@in_loop
async def test_new_version_is_seen_by_who_loads_the_table_again_iceberg_4(made: SecretiveNode) -> None:
    chain = root_chain(made.hidden.folder, slices=1, key=KEY, name="growing")
    keep(made, chain)
    async with made.served() as stranger:
        assert len(await read_table(stranger.url, "growing")) == 3
        older = await in_thread(lambda: open_table(stranger.url, "growing"))
        chain.add_rows([("Bern", 1)])
        keep(made, chain)
        assert len(await read_table(stranger.url, "growing")) == 4
        assert await in_thread(lambda: older.scan().to_arrow().num_rows) == 3


@in_loop
async def test_schema_that_evolved_gives_nulls_for_older_rows_iceberg_9(made: SecretiveNode) -> None:
    chain = root_chain(made.hidden.folder, slices=1, key=KEY, name="evolved")
    new = odf.DataField(name="country", type=odf.DataTypeOption(inner=odf.DataTypeString()))
    schema = odf.DataSchema(fields=(*CITY_SCHEMA.fields, new))
    chain.add(SetDataSchema(schema=schema))
    rows = slice_table([("Bern", 1)], first_offset=chain.next_offset(), at=NOON)
    at = chain.blocks[-1].system_time
    wider = slice_table([("Bern", 1)], first_offset=chain.next_offset(), at=type(at)(at.seconds + 1)).append_column(
        "country", pa.array(["CH"])
    )
    assert rows.num_rows == 1
    chain.add_slice(parquet_bytes(wider), rows=1)
    keep(made, chain)
    async with made.served() as stranger:
        found = await read_table(stranger.url, "evolved")
        assert {(row["city"], row["country"]) for row in found} == {
            ("Oslo", None),
            ("Rome", None),
            ("Vaduz", None),
            ("Bern", "CH"),
        }
        table = await in_thread(lambda: open_table(stranger.url, "evolved"))
        assert [len(each.fields) for each in table.schemas().values()] == [3, 4]
        assert [each.schema_id for each in table.snapshots()] == [0, 1]
        first = table.snapshots()[0].snapshot_id
        assert "country" not in (await read_table(stranger.url, "evolved", first))[0]


TYPED = odf.DataSchema(
    fields=(
        *CITY_SCHEMA.fields[:4],
        odf.DataField(name="big", type=odf.DataTypeOption(inner=odf.DataTypeUInt64())),
        odf.DataField(name="small", type=odf.DataTypeOption(inner=odf.DataTypeUInt16())),
        odf.DataField(name="amount", type=odf.DataTypeOption(inner=odf.DataTypeDecimal(precision=20, scale=3))),
        odf.DataField(name="at", type=odf.DataTypeOption(inner=odf.DataTypeTime(unit=odf.TimeUnit.MICROSECOND))),
        odf.DataField(name="day", type=odf.DataTypeOption(inner=odf.DataTypeDate())),
        odf.DataField(name="raw", type=odf.DataTypeOption(inner=odf.DataTypeBinary())),
        odf.DataField(name="is", type=odf.DataTypeOption(inner=odf.DataTypeBool())),
        odf.DataField(
            name="tags",
            type=odf.DataTypeOption(inner=odf.DataTypeList(item_type=odf.DataTypeOption(inner=odf.DataTypeString()))),
        ),
        odf.DataField(
            name="place",
            type=odf.DataTypeOption(
                inner=odf.DataTypeStruct(
                    fields=(odf.DataField(name="x", type=odf.DataTypeOption(inner=odf.DataTypeInt32())),)
                )
            ),
        ),
    )
)


@in_loop
async def test_values_of_each_type_are_read_iceberg_11_iceberg_12(
    made: SecretiveNode,
) -> None:
    chain = root_chain(made.hidden.folder, slices=0, key=KEY, name="typed")
    chain.blocks.pop(), chain.signatures.pop(), chain.step_records.pop()
    chain.add(SetDataSchema(schema=TYPED))
    values = {
        "small": [65_535, None],
        "amount": ["12345678901234567.891", None],
        "at": [3_600_000_001, None],
        "day": [19_000, None],
        "raw": [b"\0\xff", None],
        "is": [True, None],
        "tags": [["a", None], []],
        "place": [{"x": 7}, {"x": None}],
    }
    arrow = arrow_schema_of(TYPED)
    system = slice_table([("", 0)] * 2, first_offset=0, at=type(NOON)(NOON.seconds + len(chain.blocks))).select(
        range(4)
    )
    given: dict[str, Any] = {"big": [2**64 - 1, None], **values}
    columns = [
        *system.columns,
        *(
            pa.array(given[f.name], pa.string()).cast(f.type)
            if pa.types.is_decimal(f.type)
            else pa.array(given[f.name], pa.int64()).cast(f.type)
            if pa.types.is_time(f.type)
            else pa.array(given[f.name], f.type)
            for f in list(arrow)[4:]
        ),
    ]
    chain.add_slice(parquet_bytes(pa.table(columns, schema=arrow)), rows=2)
    keep(made, chain)
    async with made.served() as stranger:
        read = await read_table(stranger.url, "typed")
        expected = pa.table(columns, schema=arrow).select(list(values)).to_pylist()
        assert [{name: row[name] for name in values} for row in read] == expected
        assert [row["big"] for row in read] == [2**64 - 1, None]


@in_loop
async def test_tables_are_listed_with_what_the_caller_may_read_iceberg_2(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        for token, names in ((None, ["shown.data"]), (FRIEND_TOKEN, ["hidden.data", "shown.data"])):
            stranger.token = token
            path = "/_iceberg/v1/namespaces/odf/tables"
            listed = (await stranger.ask("GET", path)).json()
            both = [each for name in names for each in (name, f"{name}__changes")]
            assert [each["name"] for each in listed["identifiers"]] == both
            page = (await stranger.ask("GET", f"{path}?pageSize=1")).json()
            rest = (await stranger.ask("GET", f"{path}?pageToken={page['next-page-token']}")).json()
            assert [each["name"] for each in page["identifiers"] + rest["identifiers"]] == both
            assert rest["next-page-token"] is None


@in_loop
async def test_names_that_are_cut_at_their_dots_are_put_together_iceberg_2(made: SecretiveNode) -> None:
    corrected_chain(made)
    async with made.served() as stranger:

        def read() -> int:
            catalog = load_catalog("node", type="rest", uri=f"{stranger.url}/_iceberg")
            assert catalog.list_namespaces() == [("odf",)]
            assert catalog.table_exists("odf.shop.cities")
            assert not catalog.table_exists("odf.shop.others")
            return int(catalog.load_table("odf.shop.cities").scan().to_arrow().num_rows)

        assert await in_thread(read) == COUNTS[-1]


@in_loop
async def test_dataset_without_rows_is_an_empty_table_and_without_schema_none_iceberg_3(made: SecretiveNode) -> None:
    keep(made, root_chain(made.hidden.folder, slices=0, key=KEY, name="empty"))
    bare = PeerChain(made.hidden.folder, key=b"\x72" * 32, name="bare")
    keep(made, bare.add(odf.Seed(dataset_id=bare.id, dataset_kind=odf.DatasetKind.ROOT)))
    async with made.served() as stranger:
        assert await read_table(stranger.url, "empty") == []
        with pytest.raises(NoSuchTableError):
            await read_table(stranger.url, "bare")


@in_loop
async def test_writes_are_answered_405_iceberg_1(made: SecretiveNode) -> None:
    async with made.served() as stranger:
        config = (await stranger.ask("GET", "/_iceberg/v1/config")).json()
        assert all(each.startswith(("GET ", "HEAD ")) for each in config["endpoints"])
        before = made.holdings()
        for path in ("/_iceberg/v1/namespaces", "/_iceberg/v1/namespaces/odf/tables/shown.data"):
            assert (await stranger.ask("POST", path, b"{}")).status == 405
        assert made.holdings() == before


def slice_with_note(made: SecretiveNode) -> PeerChain:
    """A chain whose slice says something beside its rows."""
    chain = root_chain(made.hidden.folder, slices=0, key=KEY, name="noted")
    at = type(NOON)(NOON.seconds + len(chain.blocks))
    table = slice_table([("Bern", 1)], first_offset=0, at=at)
    return chain.add_slice(parquet_bytes(table.replace_schema_metadata({"note": "a lie"})), rows=1)


@in_loop
async def test_rows_of_others_are_given_as_this_node_wrote_them_iceberg_18(made: SecretiveNode) -> None:
    chain = slice_with_note(made)
    Judge(made.node.home.folder, made.node.engines).accept(chain)
    (slice_hash,) = chain.files
    path = f"/{tables.BUCKET}/{tables.folder_of(chain.id)}/slices/{slice_hash}.parquet"
    async with made.served() as stranger:
        assert cities_of(await read_table(stranger.url, "noted")) == {("Bern", 1)}
        given = await stranger.ask("GET", path)
        assert given.status == 200
        assert b"a lie" in chain.files[slice_hash]
        assert b"a lie" not in given.body
        made.node.objects.rows.clear()
        assert (await stranger.ask("GET", path)).body == given.body
        assert cities_of(await read_table(stranger.url, "noted")) == {("Bern", 1)}


@in_loop
async def test_slices_of_this_node_are_given_as_they_are_iceberg_18(made: SecretiveNode) -> None:
    chain = slice_with_note(made)
    keep(made, chain)
    ((slice_hash, content),) = chain.files.items()
    path = f"/{tables.BUCKET}/{tables.folder_of(chain.id)}/slices/{slice_hash}.parquet"
    async with made.served() as stranger:
        assert (await stranger.ask("GET", path)).body == content


@in_loop
async def test_rows_whose_slice_is_gone_are_404_iceberg_17(made: SecretiveNode) -> None:
    chain = slice_with_note(made)
    keep(made, chain)
    (slice_hash,) = chain.files
    made.node.objects.delete(slice_hash)
    path = f"/{tables.BUCKET}/{tables.folder_of(chain.id)}/slices/{slice_hash}.parquet"
    async with made.served() as stranger:
        assert (await stranger.ask("GET", path)).status == 404
        loaded = await stranger.ask("GET", "/_iceberg/v1/namespaces/odf/tables/noted")
        assert (loaded.status, loaded.json()["error"]["message"]) == (
            404,
            "this node holds the metadata of this table and not its rows",
        )


@in_loop
async def test_files_are_the_same_bytes_in_another_node_that_holds_the_chain_iceberg_4(
    made: SecretiveNode, tmp_path: Path
) -> None:
    chain = corrected_chain(made)
    other = create_node(tmp_path / "other")
    keep(other, chain.copy())
    folder = tables.folder_of(chain.id)
    names = [f"{shown}/{name}" for shown in ("current", "changes") for name in ("4.metadata.json", "2.list.avro")]
    names += ["current/0-2-2.avro", "current/2.own.avro", "current/2.deletes.avro", "deletes/0-2.parquet"]
    with closing(other.node):
        told = []
        for each in (made, other):
            async with each.served() as stranger:
                files = [await stranger.ask("GET", f"/{tables.BUCKET}/{folder}/{name}") for name in names]
                told.append([(file.status, file.body, file.headers.get("ETag")) for file in files])
        assert told[0] == told[1]
        assert {status for status, _, _ in told[0]} == {200}
