"""The messages of Flight SQL: commands, tickets and actions, packed in ``google.protobuf.Any``.

Numbers and types of fields are those of Apache Arrow's ``FlightSql.proto``; only what this node reads or writes is
declared, and what it rejects is known by its name. Messages are made from a table and not by a compiler, so that nobody
needs one.

Source: https://arrow.apache.org/docs/format/FlightSql.html; clauses FLIGHT-1 and FLIGHT-9 in
``spec/plug-ins/flight-sql.md``.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from odf_protocol.errors import MalformedError, UnsupportedError

PACKAGE: Final = "arrow.flight.protocol.sql"
MAX_MESSAGE_BYTES: Final = 1_000_000
"""Of one command, ticket or action; engines take 200,000 characters of SQL (GATE-15), each of four bytes at most."""

_TYPES: Final = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
}
_KEYS: Final = ("catalog optional string", "db_schema optional string", "table string")

READ: Final[dict[str, tuple[str, ...]]] = {
    "CommandGetSqlInfo": ("info repeated uint32",),
    "CommandGetXdbcTypeInfo": ("data_type optional int32",),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": ("catalog optional string", "db_schema_filter_pattern optional string"),
    "CommandGetTables": (
        "catalog optional string",
        "db_schema_filter_pattern optional string",
        "table_name_filter_pattern optional string",
        "table_types repeated string",
        "include_schema bool",
    ),
    "CommandGetTableTypes": (),
    "CommandGetPrimaryKeys": _KEYS,
    "CommandGetExportedKeys": _KEYS,
    "CommandGetImportedKeys": _KEYS,
    "CommandGetCrossReference": (
        "pk_catalog optional string",
        "pk_db_schema optional string",
        "pk_table string",
        "fk_catalog optional string",
        "fk_db_schema optional string",
        "fk_table string",
    ),
    "CommandStatementQuery": ("query string", "transaction_id optional bytes"),
    "CommandPreparedStatementQuery": ("prepared_statement_handle bytes",),
    "TicketStatementQuery": ("statement_handle bytes",),
    "ActionCreatePreparedStatementRequest": ("query string", "transaction_id optional bytes"),
    "ActionCreatePreparedStatementResult": (
        "prepared_statement_handle bytes",
        "dataset_schema bytes",
        "parameter_schema bytes",
    ),
    "ActionClosePreparedStatementRequest": ("prepared_statement_handle bytes",),
}
"""What is read or written, by name; fields in the order of their numbers, which begin with 1 and have no gap."""

REJECTED: Final = {
    "CommandStatementUpdate": "datasets are not written with SQL",
    "CommandPreparedStatementUpdate": "datasets are not written with SQL",
    "CommandStatementIngest": "datasets are not written with SQL",
    "CommandStatementSubstraitPlan": "questions are SQL, not Substrait",
    "ActionCreatePreparedSubstraitPlanRequest": "questions are SQL, not Substrait",
    "ActionBeginTransactionRequest": "there are no transactions: a question changes nothing",
    "ActionBeginSavepointRequest": "there are no transactions: a question changes nothing",
    "ActionEndTransactionRequest": "there are no transactions: a question changes nothing",
    "ActionEndSavepointRequest": "there are no transactions: a question changes nothing",
}
"""Why what is known and not done is not done (FLIGHT-9)."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message of somebody: its name and, as the library gives them, its fields."""

    name: str
    fields: Any


def decode_message(raw: bytes) -> Decoded:
    """Decode what a client sent, as one of the messages that are read.

    Raises:
        MalformedError: It is too long, or no such message.
        UnsupportedError: It asks for what this node does not do.
    """
    if len(raw) > MAX_MESSAGE_BYTES:
        raise MalformedError("Flight SQL message", expected=f"at most {MAX_MESSAGE_BYTES} bytes", found=str(len(raw)))
    packed = any_pb2.Any()
    _parse(packed, raw, "Flight SQL message")
    place, _, full = packed.type_url.rpartition("/")
    package, _, name = full.rpartition(".")
    if package != PACKAGE or not place:
        raise MalformedError("Flight SQL message", expected=f"one of {PACKAGE}", found="another")
    if name in REJECTED:
        raise UnsupportedError(f"{name}: {REJECTED[name]}")
    if name not in READ:
        raise UnsupportedError("this message of Flight SQL is not known here")
    fields = _classes()[name]()
    _parse(fields, packed.value, name)
    return Decoded(name, fields)


def encode_message(name: str, **fields: Any) -> bytes:
    """Encode one of the messages, packed."""
    packed = any_pb2.Any()
    packed.Pack(_classes()[name](**fields))
    raw: bytes = packed.SerializeToString()
    return raw


def _parse(into: Message, raw: bytes, what: str) -> None:
    try:
        into.ParseFromString(raw)
    except DecodeError as error:
        raise MalformedError(what, expected="a message of protocol buffers", found="other bytes") from error


@cache
def _classes() -> dict[str, Any]:
    """Make the classes of the messages, in a pool of their own: another library may have declared the same names."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="odf-node/flight-sql.proto", package=PACKAGE, syntax="proto3")
    for name, fields in READ.items():
        message = file.message_type.add(name=name)
        for number, declared in enumerate(fields, 1):
            _declare(message, number, declared)
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in READ}


def _declare(message: Any, number: int, declared: str) -> None:
    """Declare one field from its name, label and type."""
    name, *label, kind = declared.split()
    kinds = descriptor_pb2.FieldDescriptorProto
    field = message.field.add(name=name, number=number, type=_TYPES[kind])
    field.label = kinds.LABEL_REPEATED if label == ["repeated"] else kinds.LABEL_OPTIONAL
    if label == ["optional"]:
        # How a descriptor says that an absent value differs from an empty one. Source: protobuf's field_presence.md.
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
