"""The converter that makes values of texts that are written in another way than read steps expect.

Source: clause CONV-5 in ``spec/conversion.md``; ING-4 and ING-16 in ``spec/ingest.md``.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from odf_engines.conversion.contract import ConverterContext
from odf_engines.conversion.value_converters import TextConverter
from odf_engines.validation.text_values import Judged, find_judge, find_value_type, judge_each


class Cast(TextConverter):
    """Makes numbers, days, times and truth values of texts."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """What is made, and how it is written.

        ``column``; ``type`` as in ``ddlSchema`` (``DECIMAL(10,2)``); of numbers ``decimal`` and ``thousands``, the
        marks; of days and times ``formats``, patterns that are tried in order; of ``BOOLEAN`` the words for ``true``
        and ``false``.
        """

        column: str
        type: str
        decimal: str = "."
        thousands: str | None = None
        formats: list[str] = field(default_factory=list)
        true: list[str] = field(default_factory=list)
        false: list[str] = field(default_factory=list)

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        self.parameters = parameters
        self._type = find_value_type(parameters.type)
        self._judge, self._faults = find_judge(parameters, self._type)
        super().__init__(parameters, context)

    @property
    def type(self) -> pa.DataType:
        return self._type

    def judge(self, texts: pa.Array) -> Judged:
        return judge_each(texts, self._type, self._judge, self._faults)
