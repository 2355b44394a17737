"""The merge strategies once more, in plain Python and by reading the whole history: what the engine must agree with.

Rows are dictionaries of data columns, without the system columns but with the event time.

Source: ODF "Merge strategies".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Change = tuple[int, dict[str, Any]]

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)


def projected(history: Iterable[Change], key: Callable[[Row], Any]) -> dict[Any, dict[str, Any]]:
    """The current rows by key: the last row of each, unless it is a retraction."""
    last = {key(row): (op, row) for op, row in history}
    return {each: row for each, (op, row) in last.items() if op != RETRACT}


def append(batch: Sequence[Row], fallback: int) -> list[Change]:
    return [(APPEND, dict(row)) for row in sorted(batch, key=lambda row: fallback if row["t"] is None else row["t"])]


def ledger(
    history: Sequence[Change], batch: Sequence[Row], key: Callable[[Row], tuple[Any, ...]], fallback: int
) -> list[Change]:
    known = {key(row) for _, row in history}
    return append([row for row in batch if None in key(row) or key(row) not in known], fallback)


def snapshot(history: Sequence[Change], batch: Sequence[Row], key: Callable[[Row], Any]) -> list[Change]:
    old, new = projected(history, key), {}
    for row in batch:
        new.setdefault(key(row), row)
    changes: list[Change] = [(RETRACT, row) for each, row in old.items() if each not in new]
    for each, row in new.items():
        changes += _change(old.get(each), row)
    return _by_key(changes, key)


def upsert(history: Sequence[Change], batch: Sequence[Row], key: Callable[[Row], Any]) -> list[Change]:
    old, changes = projected(history, key), list[Change]()
    for each, row in {key(row): row for row in batch}.items():
        data = {name: value for name, value in row.items() if name != "op"}
        if row["op"] != RETRACT:
            changes += _change(old.get(each), data)
        elif each in old:
            changes.append((RETRACT, old[each]))
    return _by_key(changes, key)


def changelog(batch: Sequence[Row], key: Callable[[Row], Any]) -> list[Change]:
    changes = [(row["op"], {name: value for name, value in row.items() if name != "op"}) for row in batch]
    return sorted(changes, key=lambda change: _sortable(key(change[1])))


def with_event_time(changes: Iterable[Change], fallback: int) -> list[Change]:
    return [(op, {**row, "t": fallback if row["t"] is None else row["t"]}) for op, row in changes]


def _change(old: Row | None, new: Row) -> list[Change]:
    if old is None:
        return [(APPEND, dict(new))]
    differs = any(old[name] != new[name] for name in new if not (name == "t" and new["t"] is None))
    return [(CORRECT_FROM, dict(old)), (CORRECT_TO, dict(new))] if differs else []


def _by_key(changes: list[Change], key: Callable[[Row], Any]) -> list[Change]:
    return sorted(changes, key=lambda change: (_sortable(key(change[1])), change[0]))


def _sortable(values: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Nulls first."""
    return tuple((value is not None, value if value is not None else 0) for value in values)
