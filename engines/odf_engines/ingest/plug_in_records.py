"""Records of a source that a reader of a plug-in takes apart: texts for the conversion that all formats of text share.

Source: clauses READ-1 to READ-3 in ``spec/readers.md``.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pyarrow as pa

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest_parts import ReaderCall
from odf_engines.readers.contract import BrokenFileError, BrokenRecordError, Reader
from odf_engines.records.record_writer import RecordWriter
from odf_engines.records.source_records import FieldError, OriginalRecord, SourceRecords, split_each
from odf_engines.records.time_patterns import TimePatterns
from odf_engines.validation.contract import ParameterError
from odf_engines.validation.plug_ins import BrokenPlugInError, load_plug_in, read_parameters

NEEDED_STEP = "the read step has to be NdJson with a schema, which names the columns and their types"
"""What stands beside a reader."""

MAX_RECORD_BYTES = 16 * 1024 * 1024  # as a record of CSV (ING-2)


def make_reader(call: ReaderCall, names: tuple[str, ...]) -> Reader:
    """Make the reader of a call.

    Raises:
        ParameterError: Its parameters do not fit the columns.
        BrokenPlugInError: It cannot be loaded.
    """
    kind: type[Reader] = load_plug_in(Reader, call.name, call.module, call.attribute)
    return kind(read_parameters(kind, msgspec.json.decode(call.parameters)), names)


def read_with(
    call: ReaderCall, source: Path, source_name: str, target: pa.Schema, times: TimePatterns, path: Path
) -> SourceRecords:
    """Read a file with a reader.

    Args:
        call: The reader.
        source: The file.
        source_name: How messages call it.
        target: Columns of the read step.
        times: How dates and timestamps are written.
        path: For the records.

    Raises:
        InvalidSourceError: The file as a whole cannot be read; or the reader cannot be made, or fails.
    """
    names = tuple(target.names)
    try:
        reader = make_reader(call, names)
        broken: dict[int, tuple[FieldError, ...]] = {}
        number = 0
        with closing(RecordWriter(path, names, target, times)) as writer:
            for number, texts in enumerate(_iter_texts(reader, source, names), start=1):
                if isinstance(texts, str):
                    broken[number] = (FieldError(texts, plug_in=call.name),)
                else:
                    writer.write(number, texts)
    except (BrokenFileError, BrokenPlugInError, ParameterError) as error:
        raise InvalidSourceError(source_name, f"reader {call.name}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidSourceError(source_name, f"reader {call.name} failed: {type(error).__name__}: {error}") from error

    def find_originals(numbers: Iterable[int]) -> Iterator[OriginalRecord]:
        with source.open("rb") as file:
            records = enumerate(reader.iter_records(file), start=1)
            for wanted in numbers:
                found = next(record for place, record in records if place == wanted)
                yield OriginalRecord(wanted, found.line, found.raw)

    def split(raw: bytes) -> Iterable[tuple[str, str | None]]:
        texts = _take_apart(reader, raw, names)
        return () if isinstance(texts, str) else zip(names, texts, strict=True)

    return writer.result(number, broken, find_originals, split_each(split))


def _iter_texts(reader: Reader, source: Path, names: tuple[str, ...]) -> Iterator[list[str | None] | str]:
    with source.open("rb") as file:
        for record in reader.iter_records(file):
            yield _take_apart(reader, record.raw, names)


def _take_apart(reader: Reader, raw: bytes, names: tuple[str, ...]) -> list[str | None] | str:
    """Give the texts of a record, or what is wrong with it."""
    if len(raw) > MAX_RECORD_BYTES:
        return f"the record is longer than {MAX_RECORD_BYTES} bytes"
    try:
        texts = reader.take_apart(raw)
        return [None if (text := texts.get(name)) is None else str(text) for name in names]
    except BrokenRecordError as error:
        return str(error)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - code of others
        return f"the reader failed: {type(error).__name__}: {error}"[:1000]
