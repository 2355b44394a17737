"""Converters that keep personal data out of a dataset: what they hide is in no row of it.

Rows that fail wait in quarantine as they were sent, which is this node's own (QUAR-1).

Source: clauses CONV-5 in ``spec/plug-ins/quality.md`` and CONV-6 in ``spec/conversion.md``.
"""

import hmac
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from odf_engines.conversion.contract import ConverterContext, ParameterError
from odf_quality.text_values import Judged, judge_each
from odf_quality.value_converters import TextConverter

MIN_SECRET_BYTES: Final = 16
"""Below, a secret could be found by trying.  # guess: 128 bits, if they are random"""


class Hash(TextConverter):
    """Puts HMAC-SHA256 of a text under a secret of the node in its place, in 64 hexadecimal digits.

    Equal texts have equal hashes. Without the secret nobody can find a text by hashing guesses, as with a bare hash.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``; ``secret``: the name of a secret of the node."""

        column: str
        secret: str

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        self._secret = context.secret
        if self._secret is not None and len(self._secret) < MIN_SECRET_BYTES:
            expected = f"the name of a secret of at least {MIN_SECRET_BYTES} bytes"
            raise ParameterError("secret", expected=expected, found=f"{parameters.secret}, which is shorter")

    def judge(self, texts: pa.Array) -> Judged:
        secret = self._secret
        if secret is None:
            raise ValueError("no secret")
        return judge_each(texts, pa.string(), lambda text: hmac.digest(secret, text.encode(), "sha256").hex(), {})


class Mask(TextConverter):
    """Puts signs in the place of the characters of a text, but for some at its ends."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``; ``first`` and ``last``: how many characters stay; ``sign``: what the others become.

        Of a text that has no more characters than would stay, none does. The number of signs is always eight.
        """

        column: str
        first: int = 0
        last: int = 0
        sign: str = "*"

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        for name in ("first", "last"):
            if getattr(parameters, name) < 0:
                raise ParameterError(name, expected="0 or more", found=str(getattr(parameters, name)))
        if len(parameters.sign) != 1:
            raise ParameterError("sign", expected="one character", found=repr(parameters.sign))

    def judge(self, texts: pa.Array) -> Judged:
        return judge_each(texts, pa.string(), self._mask, {})

    def _mask(self, text: str) -> str:
        first, last, signs = self.parameters.first, self.parameters.last, self.parameters.sign * 8
        if len(text) <= first + last:
            return str(signs)
        return str(text[:first] + signs + text[len(text) - last :])
