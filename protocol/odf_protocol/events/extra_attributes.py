"""Free-form attributes: a JSON object kept as its canonical text.

Source: ODF "ExtraAttributes": one string, keys sorted, no spaces, raw UTF-8.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from odf_protocol.errors import MalformedError

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
    try:
        value = json.loads(
            text, object_pairs_hook=_object_of_pairs, parse_float=_finite_float, parse_constant=_reject_constant
        )
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()  # an escaped lone surrogate is not text
    except (ValueError, UnicodeError) as error:
        raise MalformedError("ExtraAttributes", expected="a JSON object", found=repr(text)) from error
    except RecursionError:
        raise MalformedError("ExtraAttributes", expected=f"at most {MAX_NESTING} levels", found="many more") from None
    if not isinstance(value, dict):
        raise MalformedError("ExtraAttributes", expected="a JSON object", found=repr(text))
    _check_nesting(value)
    return value


def _check_nesting(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_NESTING):
        level = [item for parent in level for item in _children(parent)]
        if not level:
            return
    raise MalformedError("ExtraAttributes", expected=f"at most {MAX_NESTING} levels", found="more")


def _children(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value
    return [child for child in children if isinstance(child, dict | list)]


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is repeated")
    return value


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def _reject_constant(name: str) -> Any:
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
    if not math.isfinite(value):
        raise ValueError(f"not a JSON number: {text}")
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    if int(exponent) == -5:
        return format(Decimal(text), "f")
    return f"{mantissa}e{int(exponent)}"
