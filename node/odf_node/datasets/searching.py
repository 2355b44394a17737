"""Finding datasets by words: in names, descriptions, keywords and names of columns.

The texts stand as they are in the blocks that define a dataset. So all these blocks are looked through as bytes, which
takes some tenths of a second for ten thousand datasets; only where all words occur is it found out what is in force.

Source: clause HOME-53 in ``spec/home.md``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.ports import DatasetNotFoundError, DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_node.ports.definitions import DefinitionStore
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import OdfError
from odf_protocol.events import AddPushSource, SetPollingSource

__all__ = ["Match", "Searching", "match_texts"]


@dataclass(frozen=True, slots=True)
class Match:
    """A dataset that has all the words.

    Attributes:
        record: It.
        where: In which of its texts: ``name``, ``description``, ``keyword x``, ``column y``.
        description: What it says of itself.
    """

    record: DatasetRecord
    where: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class Searching:
    """The use case behind ``odf-node search``."""

    chains: ChainStore
    definitions: DefinitionStore

    def iter_matches(self, words: Sequence[str]) -> Iterator[Match]:
        """Yield the datasets in which every word occurs, those first whose names have one; then by name.

        Args:
            words: Parts of words, whatever their case; each has to occur somewhere, not all in the same place.
        """
        wanted = [word.casefold() for word in words]
        records = {record.id: record for record in self.chains.list_datasets()}
        found = []
        for dataset_id, raw in self.definitions.iter_definitions():
            record = records.get(dataset_id)
            if record is None:
                continue
            text = f"{record.name}\0{raw.decode('utf-8', 'ignore')}".casefold()
            if all(word in text for word in wanted):
                found.append(record)
        found.sort(key=lambda each: (not any(word in each.name.casefold() for word in wanted), each.name))
        for record in found:
            try:
                view = load_view(self.chains, record.id)
            except DatasetNotFoundError:
                continue  # deleted meanwhile
            where = match_texts(wanted, [("name", record.name), *_iter_texts(view)])
            if where:
                yield Match(record, where, (view.info.description or "") if view.info else "")


def match_texts(words: Sequence[str], texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Say in which texts the words occur, in the order of texts; nothing where one of them is in none.

    Args:
        words: Case-folded.
        texts: What each is, and it.
    """
    folded = [(what, text.casefold()) for what, text in texts]
    if not all(any(word in text for _, text in folded) for word in words):
        return ()
    return tuple(what for what, text in folded if any(word in text for word in words))


def _iter_texts(view: DatasetView) -> Iterator[tuple[str, str]]:
    if view.info is not None:
        yield "description", view.info.description or ""
        yield from ((f"keyword {each}", each) for each in view.info.keywords or ())
    yield from ((f"column {name}", name) for name in _list_columns(view))


def _list_columns(view: DatasetView) -> list[str]:
    """Name the columns: of its rows, or before there are any, those that its sources declare."""
    if view.schema is not None:
        return [field.name for field in view.schema.fields]
    sources = [each for each in (view.polling_source, *view.push_sources.values()) if each is not None]
    return list(dict.fromkeys(name for source in sources for name in _list_declared(source)))


def _list_declared(source: SetPollingSource | AddPushSource) -> list[str]:
    read = source.read
    if read.schema is not None:
        return [field.name for field in read.schema.fields]
    if read.ddl_schema is None:
        return []
    from odf_protocol.schema_ddl import parse_ddl

    try:
        return [field.name for field in parse_ddl(list(read.ddl_schema)).fields]
    except OdfError:
        return []  # of another implementation's dialect
