"""A publisher who declares a schema again and again costs a query one look at each (SCHEMA-5, CHAIN-53)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from odf_node.adapters.rows_folder import RowsFolder
from odf_node.datasets.engine_rows import EngineRows
from odf_protocol.events import AddData, SetDataSchema
from support.offers import CITY_SCHEMA, Judge, root_chain

MANY = 400


class Counting:
    """A store that counts how many blocks it gives."""

    def __init__(self, store: Any) -> None:
        self._store, self.given = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def iter_landmarks(self, *arguments: Any, **named: Any) -> Any:
        for block in self._store.iter_landmarks(*arguments, **named):
            self.given += 1
            yield block


def test_schemas_are_read_once_however_many_there_are(tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=1)
    event = chain.blocks[-1].event
    assert isinstance(event, AddData)
    assert event.new_data is not None
    *first, one, other = CITY_SCHEMA.fields
    for number in range(MANY):
        places = (other, one) if number % 2 == 0 else (one, other)
        chain.add(SetDataSchema(schema=replace(CITY_SCHEMA, fields=(*first, *places))))
    newest = replace(CITY_SCHEMA, fields=(*first, other, one))
    chain.add(SetDataSchema(schema=newest))
    judge = Judge.create(tmp_path / "home")
    judge.accept(chain)

    with judge.opened() as store:
        counting = Counting(store)
        rows = EngineRows(counting, judge.objects, RowsFolder(judge.home))
        rows.get_paths(chain.id, (event.new_data,), newest)
        counting.given = 0
        (made,) = rows.get_paths(chain.id, (event.new_data,), newest)

    assert counting.given <= MANY + 5
    assert pq.read_schema(made).names == [field.name for field in newest.fields]
