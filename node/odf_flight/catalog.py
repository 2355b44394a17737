"""What clients are told of the datasets that they may read: tables, their columns and keys, as Flight SQL wants it.

There is no catalog and one schema without a name, so that clients write names of tables as they are.

Source: https://arrow.apache.org/docs/format/FlightSql.html; clauses FLIGHT-5 and FLIGHT-6 in
``spec/plug-ins/flight-sql.md``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Final

import pyarrow as pa

from odf_node import __version__
from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import list_named
from odf_node.datasets.row_windows import find_keys
from odf_node.records.access import ReadGrants
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import MalformedError
from odf_protocol.schema_arrow import rows_schema_of

STATE_SUFFIX: Final = "__state"
"""Behind the name of a dataset: its current rows (QUERY-3)."""
TABLE, VIEW = "TABLE", "VIEW"
SCHEMA: Final = ""
_MAX_PATTERN_CHARACTERS: Final = 1_000  # guess: several times the longest name of a dataset
_AS_SHELL_PATTERN: Final = str.maketrans({"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"})


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table that a question may name.

    Attributes:
        name: As SQL writes it, in quotes.
        kind: ``TABLE`` for a dataset, ``VIEW`` for its current rows.
        columns: As the question's answer has them.
        keys: Columns by which rows differ; none where rows may repeat.
    """

    name: str
    kind: str
    columns: pa.Schema
    keys: tuple[str, ...] = ()


def iter_tables(node: Node, reads: ReadGrants) -> Iterator[ListedTable]:
    """List the tables that somebody may ask, by name and kind."""
    found = []
    for record in list_named(node.store, reads):
        view = load_view(node.store, record.id)
        if view.schema is not None:
            found += _tables_of(record.name, view, rows_schema_of(view.schema))
    yield from sorted(found, key=lambda table: (table.name, table.kind))


def _tables_of(name: str, view: DatasetView, columns: pa.Schema) -> list[ListedTable]:
    log = (view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time)
    data = pa.schema([column for column in columns if column.name not in log])
    keys = tuple(key for key in find_keys(view) if key in data.names)
    state = ListedTable(f"{name}{STATE_SUFFIX}", VIEW, data, keys)
    return [ListedTable(name, TABLE, columns, (view.vocabulary.offset,)), state]


def _text(name: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, pa.utf8(), nullable=nullable)


_CATALOGS: Final = pa.schema([_text("catalog_name", nullable=False)])
_SCHEMAS: Final = pa.schema([_text("catalog_name"), _text("db_schema_name", nullable=False)])
_TABLES: Final = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("table_type", nullable=False),
    ]
)
_TABLE_TYPES: Final = pa.schema([_text("table_type", nullable=False)])
_PRIMARY_KEYS: Final = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("column_name", nullable=False),
        _text("key_name"),
        pa.field("key_sequence", pa.int32(), nullable=False),
    ]
)
_FOREIGN_KEYS: Final = pa.schema(
    [
        _text("pk_catalog_name"),
        _text("pk_db_schema_name"),
        _text("pk_table_name", nullable=False),
        _text("pk_column_name", nullable=False),
        _text("fk_catalog_name"),
        _text("fk_db_schema_name"),
        _text("fk_table_name", nullable=False),
        _text("fk_column_name", nullable=False),
        pa.field("key_sequence", pa.int32(), nullable=False),
        _text("fk_key_name"),
        _text("pk_key_name"),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)
_XDBC_TYPES: Final = pa.schema(
    [
        _text("type_name", nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        _text("literal_prefix"),
        _text("literal_suffix"),
        pa.field("create_params", pa.list_(pa.field("item", pa.utf8(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        _text("local_type_name"),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)


def _list_schemas(node: Node, reads: ReadGrants, asked: Any) -> pa.Table:  # noqa: ARG001 - as all of these
    has = _is_without_catalog(asked) and _fits(asked, "db_schema_filter_pattern", SCHEMA)
    return _rows(_SCHEMAS, [{"catalog_name": None, "db_schema_name": SCHEMA}] if has else [])


def _list_tables(node: Node, reads: ReadGrants, asked: Any) -> pa.Table:
    kinds = set(asked.table_types) or {TABLE, VIEW}
    found = []
    if _is_without_catalog(asked) and _fits(asked, "db_schema_filter_pattern", SCHEMA):
        found = [
            each
            for each in iter_tables(node, reads)
            if each.kind in kinds and _fits(asked, "table_name_filter_pattern", each.name)
        ]
    rows = [
        {"catalog_name": None, "db_schema_name": SCHEMA, "table_name": each.name, "table_type": each.kind}
        for each in found
    ]
    table = _rows(_TABLES, rows)
    if not asked.include_schema:
        return table
    texts = pa.array([each.columns.serialize().to_pybytes() for each in found], pa.binary())
    return table.append_column(pa.field("table_schema", pa.binary(), nullable=False), texts)


def _list_primary_keys(node: Node, reads: ReadGrants, asked: Any) -> pa.Table:
    found: list[dict[str, Any]] = []
    if _is_without_catalog(asked) and (not asked.HasField("db_schema") or asked.db_schema == SCHEMA):
        found = [
            {"db_schema_name": SCHEMA, "table_name": each.name, "column_name": key, "key_sequence": place}
            for each in iter_tables(node, reads)
            if each.name == asked.table
            for place, key in enumerate(each.keys, 1)
        ]
    return _rows(_PRIMARY_KEYS, found)


def _of_nothing(schema: pa.Schema) -> "Callable[[Node, ReadGrants, Any], pa.Table]":
    return lambda _node, _reads, _asked: schema.empty_table()


def _list_infos(node: Node, reads: ReadGrants, asked: Any) -> pa.Table:  # noqa: ARG001 - as all of these
    wanted = {code: value for code, value in _INFOS.items() if not asked.info or code in asked.info}
    places = [(value, _KIND_OF[type(value)]) for value in wanted.values()]
    children = [
        pa.array([value for value, place in places if place == number], field.type)
        for number, field in enumerate(_INFO_KINDS)
    ]
    offsets = [sum(other == place for _, other in places[:number]) for number, (_, place) in enumerate(places)]
    values = pa.UnionArray.from_buffers(
        pa.dense_union(_INFO_KINDS),
        len(places),
        [
            None,
            pa.array([place for _, place in places], pa.int8()).buffers()[1],
            pa.array(offsets, pa.int32()).buffers()[1],
        ],
        children=children,
    )
    return pa.Table.from_arrays([pa.array(list(wanted), pa.uint32()), values], schema=_INFO_SCHEMA)


_INFO_KINDS: Final = [
    pa.field("string_value", pa.utf8()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.field("item", pa.utf8()))),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.field("item", pa.int32())))),
]
_KIND_OF: Final = {str: 0, bool: 1, int: 3}
_INFO_SCHEMA: Final = pa.schema(
    [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", pa.dense_union(_INFO_KINDS))]
)
_INFOS: Final[dict[int, str | bool | int]] = {
    0: "odf-node",
    1: __version__,
    2: pa.__version__,
    3: True,  # read only
    4: True,  # SQL
    5: False,  # Substrait
    8: 0,  # no transactions
    9: False,  # no CancelQuery: a client that goes away ends its question
    500: False,  # no CREATE or DROP of catalogs, schemas, tables
    501: False,
    502: False,
    504: '"',
    506: True,  # every table that is listed can be asked
    507: 0,  # nulls are the greatest, as DataFusion has them
    531: "",  # no catalogs
    563: False,  # no transactions
}
"""By the numbers of ``SqlInfo``."""

LISTS: Final[dict[str, tuple[pa.Schema, "Callable[[Node, ReadGrants, Any], pa.Table]"]]] = {
    "CommandGetSqlInfo": (_INFO_SCHEMA, _list_infos),
    "CommandGetXdbcTypeInfo": (_XDBC_TYPES, _of_nothing(_XDBC_TYPES)),
    "CommandGetCatalogs": (_CATALOGS, _of_nothing(_CATALOGS)),
    "CommandGetDbSchemas": (_SCHEMAS, _list_schemas),
    "CommandGetTables": (_TABLES, _list_tables),
    "CommandGetTableTypes": (
        _TABLE_TYPES,
        lambda _node, _reads, _asked: _rows(_TABLE_TYPES, [{"table_type": TABLE}, {"table_type": VIEW}]),
    ),
    "CommandGetPrimaryKeys": (_PRIMARY_KEYS, _list_primary_keys),
    "CommandGetExportedKeys": (_FOREIGN_KEYS, _of_nothing(_FOREIGN_KEYS)),
    "CommandGetImportedKeys": (_FOREIGN_KEYS, _of_nothing(_FOREIGN_KEYS)),
    "CommandGetCrossReference": (_FOREIGN_KEYS, _of_nothing(_FOREIGN_KEYS)),
}
"""Commands that list something: the columns of the answer, and what makes it for somebody."""


def schema_of_list(name: str, asked: Any) -> pa.Schema:
    """Return the columns of an answer without making it."""
    schema = LISTS[name][0]
    if name == "CommandGetTables" and asked.include_schema:
        return schema.append(pa.field("table_schema", pa.binary(), nullable=False))
    return schema


def _rows(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def _is_without_catalog(asked: Any) -> bool:
    return not asked.HasField("catalog") or not asked.catalog


def _fits(asked: Any, which: str, text: str) -> bool:
    """Say whether a text fits a pattern with ``%`` and ``_``; one that was not given fits all."""
    if not asked.HasField(which):
        return True
    pattern = getattr(asked, which)
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        expected = f"a pattern of at most {_MAX_PATTERN_CHARACTERS} characters"
        raise MalformedError(which, expected=expected, found=f"{len(pattern)} characters")
    # The library's own expression takes time that is linear in both, however many signs stand for any text.
    return re.fullmatch(translate(pattern.translate(_AS_SHELL_PATTERN)), text) is not None
