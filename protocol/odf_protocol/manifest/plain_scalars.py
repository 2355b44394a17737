"""What an unquoted YAML word means where no field says it, and so which texts must be quoted.

Two users: extra attributes, which may hold any JSON value, and the writer, which quotes a text exactly when the
reference implementation does: ``no`` is a text there without quotes, ``0777`` and ``1e3`` only with them.

Source: YAML 1.2 core schema; integers of 128 bits and leading zeros as observed with the reference implementation.
"""

import math
import re
from typing import Final

from odf_protocol.manifest.nodes import NULL_WORDS

JsonScalar = None | bool | int | float | str

BOOLS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[+-]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+|[0-9]+)", re.ASCII)
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NON_FINITE: Final = re.compile(r"[+-]?(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")

#: Longest word tried as a number: 128 binary digits with sign and prefix fit, and so does any sensible float.
_MAX_NUMBER_CHARACTERS: Final = 4000

_MAX_INTEGER: Final = 2**128 - 1
_MIN_INTEGER: Final = -(2**127)


def resolve_plain(text: str) -> JsonScalar:
    """Say what the unquoted word ``text`` means: null, a bool, a number, or the text itself.

    Words that look like numbers but are not are texts: ``0777`` (an old octal), ``1_000``, ``12:30``, ``1e400``.
    Non-finite numbers come out as floats; whoever stores JSON has to refuse them.
    """
    if text in NULL_WORDS:
        return None
    if text in BOOLS:
        return BOOLS[text]
    if _has_leading_zero(text):
        return text
    number = _find_number(text)
    return text if number is None else number


def needs_quotes(text: str) -> bool:
    """Whether the string ``text``, written without quotes, would be read as something else by somebody."""
    if text in NULL_WORDS or text in BOOLS or _has_leading_zero(text):
        return True
    return _find_number(text) is not None


def _has_leading_zero(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return len(digits) > 1 and digits[0] == "0" and digits.isascii() and digits.isdigit()


def _find_number(text: str) -> int | float | None:
    if len(text) > _MAX_NUMBER_CHARACTERS:
        return None
    if _NON_FINITE.fullmatch(text):
        return math.nan if text[-1] in "nN" else -math.inf if text[0] == "-" else math.inf
    if _INTEGER.fullmatch(text):
        # Prefixes are Python's own; decimals with leading zeros, which it refuses, never come here.
        value = int(text, base=0)
        if _MIN_INTEGER <= value <= _MAX_INTEGER:
            return value
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return None


def format_float(value: float) -> str:
    """Write a finite float in the shortest form that reads back as the same, with exponents as the peers write them.

    >>> format_float(1e16), format_float(1e-5), format_float(1.0)
    ('1e16', '0.00001', '1.0')
    """
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    if int(exponent) == -5:
        # Python goes over to exponents one power of ten earlier than the peers do.
        sign = "-" if mantissa.startswith("-") else ""
        return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"
    return f"{mantissa}e{int(exponent)}"
