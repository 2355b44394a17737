"""Texts of a column converted to its type: nearly all at once, by their plainest form, the others one by one.

Source: clauses ING-4 and ING-6 in ``spec/ingest.md``.
"""

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import carrier_of
from odf_engines.records.exact_texts import find_value, form_of
from odf_engines.records.plain_texts import convert_plain
from odf_engines.records.source_records import ERRORS_TYPE, FORM, MISFIT, NULL

NOTHING: Final = "null in a required column"
SHOWN_CHARACTERS: Final = 200  # a value is quoted to be recognised; the whole record stands beside it  # guess


@dataclass(frozen=True, slots=True)
class ConvertedTexts:
    """What texts became.

    Attributes:
        values: In the carrier type; null where a text is null or denotes no value.
        bad: Places of the texts that are no value of the column, each once.
        faults: What is wrong with each of these.
    """

    values: pa.Array
    bad: pa.Array
    faults: pa.Array


def convert_texts(texts: pa.Array, field: pa.Field) -> ConvertedTexts:
    """Convert the texts of a column.

    Args:
        texts: Strings, some null.
        field: Of the column; ``is_plain_type`` holds for its type.
    """
    values, is_plain = convert_plain(texts, field.type)
    left = pc.indices_nonzero(pc.invert(is_plain))
    bad, codes = pa.array([], pa.uint64()), pa.array([], pa.string())
    if len(left):
        found, judged = _convert_each(texts.take(left), field.type)
        values = pc.replace_with_mask(values, pc.invert(is_plain), found)
        is_bad = pc.is_valid(judged)
        bad, codes = left.filter(is_bad), judged.filter(is_bad)
    if not field.nullable and texts.null_count:
        lacking = pc.indices_nonzero(pc.is_null(texts))
        bad = pa.concat_arrays([bad, lacking])
        codes = pa.concat_arrays([codes, pa.repeat(NULL, len(lacking))])
    return ConvertedTexts(values, bad, _faults_of(texts.take(bad), codes, field))


def type_name_of(field: pa.Field) -> str:
    """Name the type that a column has, as errors do."""
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _convert_each(texts: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Give the value of each text, and what it is instead of one."""
    form = form_of(target)
    assert form is not None
    has_form = re.compile(form.pattern, re.ASCII).fullmatch
    values: list[object] = []
    codes: list[str | None] = []
    for text in texts.to_pylist():
        value, code = None, FORM
        if has_form(text):
            value, code = find_value(text, target), MISFIT
        values.append(value)
        codes.append(None if value is not None else code)
    return pa.array(values, carrier_of(target)), pa.array(codes, pa.string())


def _faults_of(texts: pa.Array, codes: pa.Array, field: pa.Field) -> pa.Array:
    form = form_of(field.type)
    assert form is not None
    messages = {NULL: NOTHING, MISFIT: form.misfit, FORM: f"not {form.expected}"}
    parts = {
        "message": pa.array([messages[code] for code in codes.to_pylist()], pa.string()),
        "column": pa.repeat(field.name, len(codes)),
        "value": pc.utf8_slice_codeunits(texts, 0, SHOWN_CHARACTERS),
        "expected": pa.repeat(type_name_of(field), len(codes)),
        "code": codes,
    }
    kind = ERRORS_TYPE.value_type
    return pa.StructArray.from_arrays([parts[each.name] for each in kind], fields=list(kind))
