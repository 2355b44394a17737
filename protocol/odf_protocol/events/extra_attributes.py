"""Free-form attributes: a JSON object kept as its canonical text.

Source: ODF "ExtraAttributes": one string, keys sorted, no spaces, raw UTF-8.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from odf_protocol.errors import MalformedError

__all__ = ["ExtraAttributes"]

MAX_NESTING = 32  # guess: the known attributes nest three levels


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraAttributes:
    """Attributes by reverse-domain name, such as ``opendatafabric.org/description``.

    Attributes:
        entries: JSON object as it stands in the block. ``of`` writes the canonical form; text that came
            from elsewhere is checked to be an object and kept as it is.

    >>> ExtraAttributes.of({"b": 1, "a": {"kind": "View"}}).entries
    '{"a":{"kind":"View"},"b":1}'
    """

    entries: str

    def __post_init__(self) -> None:
        _parse_object(self.entries)

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Self:
        """Write a mapping of JSON values in canonical form."""
        return cls(entries=_canonical(attributes))

    def to_dict(self) -> dict[str, Any]:
        """Read the entries into a fresh dictionary."""
        return _parse_object(self.entries)

    def canonical(self) -> Self:
        """Return the same attributes in canonical form, for comparing."""
        return self.of(self.to_dict())


def _parse_object(text: str) -> dict[str, Any]:
    _check_nesting(text)
    try:
        value = json.loads(text, object_pairs_hook=_object_of_pairs, parse_constant=_refuse_constant)
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()  # an escaped lone surrogate is not text
    except (ValueError, UnicodeError) as error:
        raise MalformedError("ExtraAttributes", expected="a JSON object", found=repr(text)) from error
    if not isinstance(value, dict):
        raise MalformedError("ExtraAttributes", expected="a JSON object", found=repr(text))
    return value


def _check_nesting(text: str) -> None:
    # Brackets inside strings count too; a bound that is too strict there costs nothing real.
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > MAX_NESTING:
                raise MalformedError("ExtraAttributes", expected=f"at most {MAX_NESTING} levels", found="more")
        elif character in "]}":
            depth -= 1


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is repeated")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _canonical(value: Any) -> str:
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case float():
            return _canonical_float(value)
        case Mapping():
            return "{" + ",".join(f"{_canonical(str(key))}:{_canonical(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_canonical, value)) + "]"
    raise TypeError(f"not a JSON value: {value!r}")


def _canonical_float(value: float) -> str:
    """Write a float as the reference implementation does: plain from 1e-5 up to 1e16, else ``1.5e-7``."""
    text = repr(value)
    if "e" not in text or text in ("inf", "-inf", "nan"):
        if text in ("inf", "-inf", "nan"):
            raise ValueError(f"not a JSON number: {text}")
        return text
    mantissa, exponent = text.split("e")
    if int(exponent) == -5:
        return format(Decimal(text), "f")
    return f"{mantissa}e{int(exponent)}"
