"""Plug-ins by their places, and their parameters: validators and converters.

A declaration is checked where the manifest is read; in the sandbox the class is loaded by the place that the request
names, as no package's list of entry points is there.

Source: clauses VALID-1 and VALID-3 in ``spec/validation.md``, CONV-3 in ``spec/conversion.md``.
"""

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from odf_engines.errors import EngineError
from odf_engines.ingest_parts import ValidatorCall
from odf_engines.validation.contract import Context, ParameterError, Validator


class BrokenPlugInError(EngineError):
    """A plug-in of another package cannot be loaded."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"plug-in {name} cannot be loaded: {reason}; fix or remove the package that brings it")


def load_plug_in(base: type, name: str, module: str, attribute: str) -> Any:
    """Load the class of a validator or converter.

    Raises:
        BrokenPlugInError: There is none there.
    """
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise BrokenPlugInError(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base) and hasattr(found, "Parameters")):
        raise BrokenPlugInError(name, f"{module}:{attribute} is no {base.__name__} with Parameters")
    return found


def load_validator(name: str, module: str, attribute: str) -> type[Validator]:
    """Load a validator's class; for the error see ``load_plug_in``."""
    found: type[Validator] = load_plug_in(Validator, name, module, attribute)
    return found


def parameter_schema(kind: Any) -> dict[str, Any]:
    """Return the parameters of a plug-in as a JSON schema."""
    schema = msgspec.json.schema(kind.Parameters)
    name = schema["$ref"].rpartition("/")[2]
    found: dict[str, Any] = schema["$defs"].pop(name)
    return {**found, "additionalProperties": False, **({"$defs": schema["$defs"]} if schema["$defs"] else {})}


def read_parameters(kind: Any, declared: Mapping[str, Any]) -> Any:
    """Read the parameters of a declaration.

    Args:
        kind: Class of the plug-in.
        declared: Texts, lists and maps of them, or None, as a manifest has them: what a text means, its field says.

    Raises:
        ParameterError: One is unknown, missing, or of another type.
    """
    known = [field.name for field in fields(kind.Parameters)]
    for name in declared:
        if name not in known:
            raise ParameterError(name, expected=f"a parameter of it ({', '.join(known)})", found=name, known=known)
    try:
        return msgspec.convert(dict(declared), kind.Parameters, strict=False)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`") or next((each for each in known if f"`{each}`" in message), "")
        raise ParameterError(name, expected=_expected(message), found=_found(declared, name)) from error


def make_validator(call: ValidatorCall, context: Context) -> Validator:
    """Make the validator of a call.

    Raises:
        ParameterError: Its parameters do not fit the columns.
        BrokenPlugInError: It cannot be loaded.
    """
    kind = load_validator(call.name, call.module, call.attribute)
    return kind(read_parameters(kind, msgspec.json.decode(call.parameters)), context)


def _expected(message: str) -> str:
    return (
        message.removeprefix("Expected ")
        .replace("Object missing required field", "the parameter")
        .partition(", got")[0]
    )


def _found(declared: Mapping[str, Any], name: str) -> str:
    return str(declared[name]) if name in declared else "nothing"
