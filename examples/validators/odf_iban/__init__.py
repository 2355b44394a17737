"""Bank account numbers (ISO 13616): form and check digits."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.columns import ColumnPath
from odf_engines.validation.contract import Context, Fault, Validator


class Iban(Validator):
    """Texts that are an IBAN, of some countries or of all."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        column: str
        countries: list[str] = field(default_factory=list)

    def __init__(self, parameters: Parameters, context: Context) -> None:
        super().__init__(parameters, context)
        self._path = ColumnPath.find(context.schema, parameters.column)

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self._path.column,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        found = self._path.read(rows)
        texts = pc.ascii_upper(pc.replace_substring(found.values, " ", ""))
        # Each different text is looked at once.
        verdicts = {text: has_check_digits(text) for text in texts.unique().to_pylist() if text is not None}
        is_bad = pa.array([text is not None and not verdicts[text] for text in texts.to_pylist()], pa.bool_())
        yield found.fault(is_bad, code="iban", message="not an IBAN, or with a wrong digit")
        if self.parameters.countries:
            countries = pc.utf8_slice_codeunits(texts, 0, 2)
            is_elsewhere = pc.invert(pc.is_in(countries, pa.array(self.parameters.countries)))
            is_wrong = pc.and_(pc.and_(is_elsewhere, texts.is_valid()), pc.invert(is_bad))
            yield found.fault(is_wrong, code="iban-country", message="an IBAN of another country")


def has_check_digits(text: str) -> bool:
    """Say whether a text without spaces is an IBAN whose check digits are right."""
    if not (15 <= len(text) <= 34 and text.isascii() and text.isalnum()):
        return False
    if not (text[:2].isalpha() and text[2:4].isdigit()):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1
