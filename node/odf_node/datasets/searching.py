"""Finding datasets by words: in names, descriptions, keywords and names of columns.

The texts stand as they are in the blocks that define a dataset. So all these blocks are looked through as bytes, which
takes some tenths of a second for ten thousand datasets; only where all words occur is it found out what is in force.

Source: clauses HOME-53 in ``spec/home.md`` and EX-89 in ``spec/extensions/exchange.md``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from odf_node.datasets.chains import load_view
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError
from odf_node.store import MetadataStore
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import OdfError
from odf_protocol.events import AddPushSource, SetPollingSource
from odf_protocol.exchange.limits import (
    MAX_PROBLEM_TEXT_CHARACTERS,
    MAX_REPORTED_CHARACTERS,
    MAX_REPORTED_WORDS,
    MAX_SEARCH_LOOKS,
    PAGE_SEARCHED,
)
from odf_protocol.exchange.messages import DatasetTexts
from odf_protocol.exchange.words import fold, match_texts
from odf_protocol.schema_ddl import parse_ddl


@dataclass(frozen=True, slots=True)
class Match:
    """A dataset that has all the words.

    Attributes:
        record: It.
        where: In which of its texts: ``name``, ``description``, ``keyword x``, ``column y``.
        texts: Its description, and the keywords and columns in which a word occurs.
    """

    record: DatasetRecord
    where: tuple[str, ...]
    texts: DatasetTexts


@dataclass(frozen=True, slots=True)
class Searching:
    """The use case behind ``odf-node search``, here and where another node asks (EX-89)."""

    store: MetadataStore

    def iter_matches(self, words: Sequence[str]) -> Iterator[Match]:
        """Yield the datasets in which every word occurs, those first whose names have one; then by name.

        Args:
            words: Parts of words, whatever their case; each has to occur somewhere, not all in the same place.
        """
        wanted = fold(words)
        found = self._list_candidates(wanted, self.store.list_datasets())
        found.sort(key=lambda each: (not any(word in each.name.casefold() for word in wanted), each.name))
        return (match for record in found if (match := self._look(record, wanted)) is not None)

    def find_page(
        self, words: Sequence[str], records: Iterable[DatasetRecord], *, after: str
    ) -> tuple[list[tuple[DatasetRecord, DatasetTexts]], str | None]:
        """Find a page of datasets, as ``DatasetSearch`` says."""
        wanted = fold(words)
        found = self._list_candidates(wanted, (record for record in records if record.name > after))
        found.sort(key=lambda each: each.name)
        page: list[tuple[DatasetRecord, DatasetTexts]] = []
        for looks, record in enumerate(found, start=1):
            match = self._look(record, wanted)
            page += [] if match is None else [(record, match.texts)]
            if looks < len(found) and (looks == MAX_SEARCH_LOOKS or len(page) == PAGE_SEARCHED):
                return page, record.name
        return page, None

    def _list_candidates(self, wanted: Sequence[str], records: Iterable[DatasetRecord]) -> list[DatasetRecord]:
        by_id = {record.id: record for record in records}
        found = []
        for dataset_id, raw in self.store.iter_definitions():
            record = by_id.get(dataset_id)
            if record is None:
                continue
            text = f"{record.name}\0{raw.decode('utf-8', 'ignore')}".casefold()
            if all(word in text for word in wanted):
                found.append(record)
        return found

    def _look(self, record: DatasetRecord, wanted: Sequence[str]) -> Match | None:
        try:
            view = load_view(self.store, record.id)
        except DatasetNotFoundError:
            return None  # deleted meanwhile
        texts = _report(view, wanted)
        where = match_texts(wanted, texts.list_named(record.name))
        return Match(record, where, texts) if where else None


def _report(view: DatasetView, wanted: Sequence[str]) -> DatasetTexts:
    def choose(texts: Iterable[str]) -> tuple[str, ...]:
        cut = [text[:MAX_REPORTED_CHARACTERS] for text in texts]
        # Some of each word: many columns that have the first one must not hide the only one that has the second.
        of_each = (islice((text for text in cut if word in text.casefold()), most) for word in wanted)
        return tuple(dict.fromkeys(chain.from_iterable(of_each)))

    most = MAX_REPORTED_WORDS // max(len(wanted), 1)

    info = view.info
    return DatasetTexts(
        description=((info.description or "") if info else "")[:MAX_PROBLEM_TEXT_CHARACTERS],
        keywords=choose((info.keywords or ()) if info else ()),
        columns=choose(_list_columns(view)),
    )


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
    try:
        return [field.name for field in parse_ddl(list(read.ddl_schema)).fields]
    except OdfError:
        return []  # of another implementation's dialect
