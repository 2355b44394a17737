"""Requests and errors as JSON between the two sides of the sandbox.

A request travels from the trusted side, so decoding builds the declared dataclasses without asking further; but only
those of the contract and of ODF's events. Answers come from the untrusted side: they are plain dictionaries which the
receiver checks field by field, and errors, of which only known kinds with plain fields are made.

Source: clause ENGINE-4 in ``spec/extensions/engine-contract.md``.
"""

import dataclasses
import enum
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import odf_engines.contract
import odf_engines.errors
from odf_engines.errors import EngineError, EngineFailureError
from odf_engines.host.arrow_texts import schema_from_text, schema_text
from odf_engines.ingest_parts import StrategyCall
from odf_protocol import events
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_TYPE = "$"
_TEXT_LIMIT = 4000  # characters of any text in an error; guess: a long query and its complaint


def encode_message(message: object, place: Callable[[Path], str]) -> str:
    """Write a dataclass, and all below it, as one line of JSON.

    Args:
        message: Dataclasses, tuples, lists, dictionaries with text keys, paths, schemas and plain values.
        place: Where a path of the host appears inside the sandbox.
    """
    return json.dumps(_plain(message, place), ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def decode_message(text: str) -> Any:
    """Read what ``encode_message`` wrote; lists come back as tuples."""
    return _value(json.loads(text))


def error_to_fields(error: EngineError) -> dict[str, Any]:
    """Return an error as plain values, texts cut to a bound; what an engine derives from one of ours is that one."""
    match error:
        case odf_engines.errors.InvalidQueryError():
            error = odf_engines.errors.InvalidQueryError(error.message, position=error.position)
        case odf_engines.errors.NotReproducibleError():
            error = odf_engines.errors.NotReproducibleError(error.expression, error.reason, error.rewrite)
    return {"kind": type(error).__name__, **{name: _cut(value) for name, value in vars(error).items()}}


def error_from_fields(fields: object) -> EngineError:
    """Make the error that the untrusted side reported; anything odd becomes an ``EngineFailureError``."""
    match fields:
        case {"kind": "InvalidQueryError", "message": str(message), **rest}:
            position = rest.get("position")
            return odf_engines.errors.InvalidQueryError(
                _cut(message), position=_cut(position) if isinstance(position, str) else None
            )
        case {"kind": "NotReproducibleError", "expression": str(a), "reason": str(b), "rewrite": str(c)}:
            return odf_engines.errors.NotReproducibleError(_cut(a), _cut(b), _cut(c))
        case {"kind": "InvalidSourceError", "source_name": str(name), "message": str(message)}:
            return odf_engines.errors.InvalidSourceError(_cut(name), _cut(message))
        case {"kind": "LimitExceededError", "limit": str(limit), "allowed": int() | float() as allowed, **rest}:
            found, where = rest.get("found"), rest.get("where")
            return odf_engines.errors.LimitExceededError(
                _cut(limit),
                allowed=allowed,
                found=found if isinstance(found, int | float) else None,
                where=_cut(where) if isinstance(where, str) else "",
            )
        case {"kind": "EngineMissingError", "engine": str(name), "installed": list(known), "purpose": str(purpose)}:
            return odf_engines.errors.EngineMissingError(
                _cut(name), [_cut(each) for each in known[:10] if isinstance(each, str)], purpose=_cut(purpose)
            )
        case {"kind": "ClusterUnavailableError", "master": str(master), "reason": str(reason)}:
            return odf_engines.errors.ClusterUnavailableError(_cut(master), _cut(reason))
        case {"kind": "EngineFailureError", "message": str(message)}:
            return EngineFailureError(_cut(message))
    return EngineFailureError("the engine reported an error of no known kind")


def _cut(value: Any) -> Any:
    return value[:_TEXT_LIMIT] if isinstance(value, str) else value


def _plain(value: object, place: Callable[[Path], str]) -> Any:
    if isinstance(value, enum.Enum):
        return {_TYPE: type(value).__name__, "name": value.name}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Path):
        return {_TYPE: "Path", "text": place(value)}
    if isinstance(value, bytes):
        return {_TYPE: "bytes", "hex": value.hex()}
    if isinstance(value, pa.Schema):
        return {_TYPE: "Schema", "ipc": schema_text(value)}
    if isinstance(value, tuple | list):
        return [_plain(item, place) for item in value]
    if isinstance(value, dict):
        if _TYPE in value:
            raise ValueError(f"a key {_TYPE!r} cannot be distinguished from a type")
        return {str(key): _plain(item, place) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and type(value) is _types().get(type(value).__name__):
        fields = {field.name: _plain(getattr(value, field.name), place) for field in dataclasses.fields(value)}
        return {_TYPE: type(value).__name__, **fields}
    # Both an event and the contract call something TransformInput; inside a TransformRequest it is the contract's.
    raise TypeError(f"cannot be sent to an engine: {type(value).__name__}")


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_value(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    name = plain.pop(_TYPE, None)
    values = {key: _value(item) for key, item in plain.items()}
    if name is None:
        return values
    if name == "Path":
        return Path(values["text"])
    if name == "bytes":
        return bytes.fromhex(values["hex"])
    if name == "Schema":
        return schema_from_text(values["ipc"])
    kind = _types()[name]
    return kind[values["name"]] if issubclass(kind, enum.Enum) else kind(**values)


@cache
def _types() -> dict[str, type]:
    known: dict[str, type] = {
        kind.__name__: kind for kind in (DatasetId, Multihash, StrategyCall, Timestamp, Vocabulary)
    }
    for module in (events, odf_engines.contract):
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)):
                known[name] = kind
    return known
