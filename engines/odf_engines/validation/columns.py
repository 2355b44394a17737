"""Where the values are that a validator is about: columns, members of structs, elements of lists.

A path is the name of a column, followed by ``.member`` for a struct and ``[]`` for each element of a list:
``address.zip``, ``tags[]``, ``items[].price``. A column of exactly that name comes first.

Source: clause VALID-5 in ``spec/validation.md``.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import one_array
from odf_engines.validation.contract import Fault, ParameterError

_STEP = re.compile(r"\[\]|\.[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class FoundValues:
    """The values at a path.

    Attributes:
        path: As it was declared.
        values: One array, in the order of rows.
        rows: For each value the position of its row; None: one value a row.
        places: For each value where it stands in its row's lists, one array a list; empty outside of lists.
    """

    path: str
    values: pa.Array
    rows: np.ndarray | None = None
    places: tuple[np.ndarray, ...] = ()

    def fault(self, is_bad: pa.BooleanArray, *, code: str, message: str) -> Fault:
        """Make a fault of the values that are bad; a null verdict is none."""
        bad = np.flatnonzero(pc.fill_null(is_bad, False).to_numpy(zero_copy_only=False))
        values = self.values.take(pa.array(bad))
        if self.rows is None:
            return Fault(code=code, message=message, column=self.path, rows=pa.array(bad), values=values)
        named = [self._name(position) for position in bad]
        rows, columns = pa.array(self.rows[bad]), pa.array(named, pa.string())
        return Fault(code=code, message=message, rows=rows, columns=columns, values=values)

    def _name(self, position: np.integer[Any]) -> str:
        places = iter(self.places)
        return re.sub(r"\[\]", lambda _: f"[{next(places)[position]}]", self.path)


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A way to values.

    Attributes:
        text: As it was declared.
        column: Name of the column that it begins with.
        steps: What follows: names of members, and ``[]``.
        type: Of the values.
    """

    text: str
    column: str
    steps: tuple[str, ...]
    type: pa.DataType

    @classmethod
    def find(cls, schema: pa.Schema, text: str, *, parameter: str = "column") -> "ColumnPath":
        """Find the way through the columns of a schema.

        Raises:
            ParameterError: There is no such column, member or list; it names those that there are.
        """
        if text in schema.names:
            return cls(text, text, (), schema.field(text).type)
        column = re.split(r"\.|\[\]", text, maxsplit=1)[0]
        steps = tuple(_STEP.findall(text[len(column) :]))
        if column not in schema.names or column + "".join(steps) != text:
            expected = f"a column of the rows ({', '.join(schema.names)})"
            raise ParameterError(parameter, expected=expected, found=text, known=schema.names)
        kind = schema.field(column).type
        for index, step in enumerate(steps):
            kind = _follow(kind, step, column + "".join(steps[:index]), parameter)
        return cls(text, column, steps, kind)

    def read(self, rows: pa.Table) -> FoundValues:
        """Take the values out of rows."""
        values = one_array(rows.column(self.column))
        parents: np.ndarray | None = None
        places: tuple[np.ndarray, ...] = ()
        for step in self.steps:
            if step != "[]":
                values = pc.struct_field(values, step.removeprefix("."))
                continue
            owners = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
            within = np.arange(len(owners)) - np.searchsorted(owners, owners)
            parents = owners if parents is None else parents[owners]
            places = (*(place[owners] for place in places), within)
            values = pc.list_flatten(values)
        return FoundValues(self.text, values, parents, places)


def _follow(kind: pa.DataType, step: str, place: str, parameter: str) -> pa.DataType:
    if step == "[]":
        if not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise ParameterError(parameter, expected=f"a list at {place}", found=str(kind))
        return kind.value_type
    name = step.removeprefix(".")
    members = [field.name for field in kind] if pa.types.is_struct(kind) else []
    if name not in members:
        expected = f"a member of {place} ({', '.join(members)})" if members else f"a struct at {place}"
        raise ParameterError(parameter, expected=expected, found=name if members else str(kind), known=members)
    return kind.field(name).type
