"""Texts of a column converted to its type: nearly all at once, by their plainest form, the others one by one.

This is the one way from text to value. Texts of lists and structs are taken apart, and their items and members are
columns of texts again; what is wrong with one is reported with its path (``items[3].price``).

Source: clauses ING-4 and ING-6 in ``spec/ingest.md``.
"""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import carrier_of
from odf_engines.records.exact_texts import ExactForm, find_value, form_of
from odf_engines.records.json_texts import split_array, split_members
from odf_engines.records.plain_texts import convert_plain
from odf_engines.records.source_records import ERRORS_TYPE, FORM, MISFIT, NULL
from odf_engines.records.time_patterns import TimePatterns
from odf_protocol.errors import UnsupportedError

NOTHING: Final = "null in a required column"
SHOWN_CHARACTERS: Final = 200  # a value is quoted to be recognised; the whole record stands beside it  # guess
RFC_3339: Final = TimePatterns()

_MAX_FAULTS: Final = 100  # guess: of one value; who fixes that many looks at the record
_FAULT: Final = ERRORS_TYPE.value_type


@dataclass(frozen=True, slots=True)
class ConvertedTexts:
    """What texts became.

    Attributes:
        values: In the carrier type; null where a text is null or denotes no value.
        bad: Places of the texts that are no value of the column, ascending, each once for each of its faults.
        faults: What is wrong with each of these.
    """

    values: pa.Array
    bad: np.ndarray
    faults: pa.Array


def describe_form(kind: pa.DataType, times: TimePatterns = RFC_3339) -> ExactForm:
    """Return the form that texts of a slice type have; the pattern of nested types is empty.

    Raises:
        UnsupportedError: Texts cannot denote values of this type.
    """
    types = pa.types
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        item = describe_form(kind.value_type, times)
        return ExactForm("", f"a JSON array of: {item.expected}", "an item does not fit")
    if types.is_struct(kind):
        members = [f"{member.name}: {describe_form(member.type, times).expected}" for member in kind]
        return ExactForm("", f"a JSON object with {'; '.join(members)}", "a member does not fit")
    form, pattern = form_of(kind), times.of(kind)
    if form is None:
        raise UnsupportedError("column type in a source of text", found=kind)
    if pattern is None:
        return form
    what = "a day" if types.is_date(kind) else "a time"
    return ExactForm("", f"{what} written as {pattern.text}", form.misfit)


def convert_texts(texts: pa.Array, field: pa.Field, times: TimePatterns = RFC_3339) -> ConvertedTexts:
    """Convert the texts of a column.

    Args:
        texts: Strings, some null.
        field: Of the column; ``describe_form`` knows its type.
        times: How dates and timestamps are written.
    """
    if pa.types.is_struct(field.type):
        found = _convert_objects(texts, field, times)
    elif pa.types.is_nested(field.type):
        found = _convert_arrays(texts, field, times)
    else:
        found = _convert_single(texts, field, times)
    if field.nullable or not texts.null_count:
        return found
    lacking = np.flatnonzero(texts.is_null())
    faults = _faults_of(texts.take(pa.array(lacking)), NULL, field, times)
    return _joined(found.values, [(found.bad, found.faults), (lacking, faults)])


def type_name_of(field: pa.Field) -> str:
    """Name the type that a column has, as errors do."""
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _convert_single(texts: pa.Array, field: pa.Field, times: TimePatterns) -> ConvertedTexts:
    """Convert texts of a type without items or members."""
    pattern = times.of(field.type)
    written = texts if pattern is None else pattern.rewrite(texts)
    values, is_plain = convert_plain(written, field.type)
    places, codes = np.array([], np.int64), pa.array([], pa.string())
    left = pc.indices_nonzero(pc.invert(is_plain))
    if len(left):
        found, judged = _convert_each(written.take(left), field.type)
        values = pc.replace_with_mask(values, pc.invert(is_plain), found)
        is_bad = pc.is_valid(judged)
        places, codes = left.filter(is_bad).to_numpy().astype(np.int64), judged.filter(is_bad)
    bad = [(places, _faults_of(texts.take(pa.array(places)), codes, field, times))]
    if pattern is not None:
        # What was written anew has the form, whatever it denotes.
        formless = np.flatnonzero(pc.and_(texts.is_valid(), written.is_null()))
        bad = [
            (places, _faults_of(texts.take(pa.array(places)), MISFIT, field, times)),
            (formless, _faults_of(texts.take(pa.array(formless)), FORM, field, times)),
        ]
    return _joined(values, bad)


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


def _convert_arrays(texts: pa.Array, field: pa.Field, times: TimePatterns) -> ConvertedTexts:
    """Convert texts of JSON arrays: all their items are one column of texts."""
    lists = [None if text is None else split_array(text) for text in texts.to_pylist()]
    lengths = np.array([len(items or ()) for items in lists], np.int64)
    owners = np.repeat(np.arange(len(lists)), lengths)
    firsts = np.cumsum(lengths) - lengths
    items = pa.array([item for items in lists for item in items or ()], pa.string())
    inner = convert_texts(items, field.type.value_field.with_name(""), times)
    places = inner.bad - firsts[owners[inner.bad]]
    paths = pc.binary_join_element_wise(f"{field.name}[", pa.array(places).cast(pa.string()), "]", "")
    bad = _limited(owners[inner.bad], _below(paths, inner.faults))
    is_bad = np.zeros(len(texts), bool)
    is_bad[bad[0]] = True
    is_array = np.array([items is not None for items in lists], bool)
    misfits = np.zeros(len(texts), bool)
    if pa.types.is_fixed_size_list(field.type):
        misfits = is_array & ~is_bad & (lengths != field.type.list_size)
    is_bad |= misfits
    kept = inner.values.filter(pa.array(~is_bad[owners]))
    offsets = np.concatenate([[0], np.cumsum(np.where(is_bad, 0, lengths))]).astype(np.int32)
    values = pa.ListArray.from_arrays(
        pa.array(offsets), kept, type=carrier_of(field.type), mask=pa.array(is_bad | ~is_array)
    )
    return _joined(values, [bad, *_whole_faults(texts, is_array, misfits, field, times)])


def _convert_objects(texts: pa.Array, field: pa.Field, times: TimePatterns) -> ConvertedTexts:
    """Convert texts of JSON objects: each of their members is a column of texts."""
    objects = [None if text is None else split_members(text) for text in texts.to_pylist()]
    is_object = np.array([members is not None for members in objects], bool)
    present = np.flatnonzero(is_object)
    bad, columns = [], []
    for member in field.type:
        found = [members.get(member.name) for members in objects if members is not None]
        inner = convert_texts(pa.array(found, pa.string()), member.with_name(""), times)
        columns.append(inner.values)
        bad.append((present[inner.bad], _below(pa.repeat(f"{field.name}.{member.name}", len(inner.bad)), inner.faults)))
    joined = _joined(pa.nulls(len(texts)), bad)
    limited = _limited(joined.bad, joined.faults)
    is_bad = np.zeros(len(texts), bool)
    is_bad[limited[0]] = True
    good = np.flatnonzero(is_object & ~is_bad)
    kind = carrier_of(field.type)
    whole = pa.StructArray.from_arrays(
        [column.filter(pa.array(~is_bad[present])) for column in columns], fields=list(kind)
    )
    places = np.full(len(texts), -1)
    places[good] = np.arange(len(good))
    values = whole.take(pa.array(places, mask=places < 0))
    return _joined(values, [limited, *_whole_faults(texts, is_object, np.zeros(len(texts), bool), field, times)])


def _whole_faults(
    texts: pa.Array, has_form: np.ndarray, misfits: np.ndarray, field: pa.Field, times: TimePatterns
) -> list[tuple[np.ndarray, pa.Array]]:
    """Give the faults of texts that are no array or object, and of those of the wrong length."""
    formless = np.flatnonzero(np.asarray(texts.is_valid()) & ~has_form)
    others = np.flatnonzero(misfits)
    return [
        (formless, _faults_of(texts.take(pa.array(formless)), FORM, field, times)),
        (others, _faults_of(texts.take(pa.array(others)), MISFIT, field, times)),
    ]


def _below(paths: pa.Array, faults: pa.Array) -> pa.Array:
    """Put paths before those of faults."""
    columns = [
        pc.binary_join_element_wise(paths, faults.field("column"), "")
        if each.name == "column"
        else faults.field(each.name)
        for each in _FAULT
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_FAULT))


def _limited(owners: np.ndarray, faults: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Leave out the faults of a value beyond so many; those of one value stand together."""
    _, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
    rank = np.arange(len(owners)) - np.repeat(firsts, counts)
    chosen = rank < _MAX_FAULTS
    return owners[chosen], faults.filter(pa.array(chosen))


def _joined(values: pa.Array, bad: list[tuple[np.ndarray, pa.Array]]) -> ConvertedTexts:
    """Bring faults into the order of the texts; those of one text stay as they are."""
    places = np.concatenate([each for each, _ in bad]).astype(np.int64)
    if not len(places):
        return ConvertedTexts(values, places, pa.array([], _FAULT))
    faults = pa.concat_arrays([each for _, each in bad])
    order = np.argsort(places, kind="stable")
    return ConvertedTexts(values, places[order], faults.take(pa.array(order)))


def _faults_of(texts: pa.Array, codes: pa.Array | str, field: pa.Field, times: TimePatterns) -> pa.Array:
    if not len(texts):
        return pa.array([], _FAULT)
    if isinstance(codes, str):
        codes = pa.repeat(codes, len(texts))
    form = describe_form(field.type, times)
    messages = {NULL: NOTHING, MISFIT: form.misfit, FORM: f"not {form.expected}"}
    parts = {
        "message": pa.array([messages[code] for code in codes.to_pylist()], pa.string()),
        "column": pa.repeat(field.name, len(codes)),
        "value": pc.utf8_slice_codeunits(texts, 0, SHOWN_CHARACTERS),
        "expected": pa.repeat(type_name_of(field), len(codes)),
        "code": codes,
    }
    return pa.StructArray.from_arrays([parts[each.name] for each in _FAULT], fields=list(_FAULT))
