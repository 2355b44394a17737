"""What a manifest shows to be impossible here: found by ``add``, with its place, and not by the first ``pull``.

Source: clauses ING-18 in ``spec/ingest.md``, VALID-1 in ``spec/validation.md`` and PLUG-10 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa

from odf_engines.contract import ReferencedRows
from odf_engines.conversion.contract import ColumnsUnknownError, Converter, ConverterContext
from odf_engines.conversion.converted_rows import make_converters
from odf_engines.engine import IngestEngine
from odf_engines.ingest.columns import Columns, columns_of, rename_reserved
from odf_engines.ingest.declared import check_hashed, check_merge_columns
from odf_engines.ingest.plug_in_records import NEEDED_STEP
from odf_engines.ingest.source_schema import find_declared
from odf_engines.readers.contract import Reader
from odf_engines.validation.contract import Context, ParameterError, Validator
from odf_engines.validation.plug_ins import BrokenPlugInError, load_plug_in, read_parameters
from odf_node.errors import UnknownDatasetError
from odf_node.ingest.attachment_kinds import check_attachments
from odf_node.ingest.declared_plug_ins import (
    RULES_PATH,
    DeclaredConverter,
    DeclaredPlugIn,
    DeclaredReader,
    DeclaredSink,
    DeclaredValidator,
    reject_parameter,
)
from odf_node.ingest.declared_strategy import check_strategy
from odf_node.ingest.encodings import as_utf8, check_encoding
from odf_node.ingest.ingest_rules import find_rules, parse_rules
from odf_node.ports.sinks import Sink, SinkContext
from odf_node.ports.sources import SourceReader
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    AddPushSource,
    MergeStrategy,
    ReadStep,
    ReadStepNdJson,
    SetAttachments,
    SetPollingSource,
    SetVocab,
)
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.manifest.errors import At, ManifestError
from odf_protocol.vocabulary import Vocabulary

FindColumns = Callable[[str], ReferencedRows | None]
"""Says what a dataset's rows are like; None where it never had rows. One that is not here is an UnknownDatasetError."""


def list_converters(events: Iterable[object]) -> tuple[DeclaredConverter, ...]:
    """List the converters that a manifest declares; none where its rules cannot be read, which ``check_rules`` says."""
    converters: tuple[DeclaredConverter, ...] = ()
    for event in events:
        if isinstance(event, SetAttachments):
            with suppress(ManifestError):
                converters = find_rules(event).converters
    return converters


def find_row_columns(
    source: SetPollingSource | AddPushSource,
    vocabulary: Vocabulary,
    converters: Sequence[DeclaredConverter],
    at: At,
    find_columns: FindColumns,
    known: pa.Schema | None = None,
) -> Columns | None:
    """Find the columns of the rows that a source's validators see; None where only a file or a query will tell.

    Args:
        source: One that an engine has checked.
        vocabulary: Names of the dataset's system columns.
        converters: That its rows go through.
        at: Its place.
        find_columns: Of the datasets that converters look into.
        known: Columns that the dataset has.

    Raises:
        SnapshotError: What converters make of its columns cannot be merged.
    """
    declared = find_declared(source.read)
    if declared is None or source.preprocess is not None:
        return None
    if converters:
        try:
            made = make_converters([each.find_call(None, find_columns) for each in converters], declared)
        except (ParameterError, BrokenPlugInError, UnsupportedError, ColumnsUnknownError, UnknownDatasetError):
            return None  # told with its own place, or by the first ingest
        check_merge_columns(made[-1].schema, source.merge, vocabulary, at)
        for field in made[-1].schema:
            check_hashed(field, at / "read")
        return columns_of(made[-1].schema, source.merge, vocabulary, known)
    found = declared if source.read.schema is not None else rename_reserved(declared, source.merge, vocabulary)
    return columns_of(found, source.merge, vocabulary, known)


def check_rules(
    event: SetAttachments,
    at: At,
    reads: Sequence[ReadStep],
    schemas: Sequence[pa.Schema],
    find_columns: FindColumns,
    merges: Sequence[MergeStrategy] = (),
) -> None:
    """Reject rules that cannot be followed.

    Args:
        event: With attachments; those that are none of ours are not looked at.
        at: Its place.
        reads: The read step of each source, which an engine has checked.
        schemas: Columns of the rows behind the converters, as far as they are known.
        find_columns: Of the datasets that converters look into.
        merges: The merge strategy of each source.

    Raises:
        SnapshotError: A rule is wrong.
    """
    for index, item in enumerate(event.attachments.items):
        if item.path != RULES_PATH:
            continue
        try:
            rules = parse_rules(item.content)
            if rules.reader is not None:
                _check_reader(rules.reader, reads)
            declared_schemas = [schema for read in reads if (schema := find_declared(read)) is not None]
            _check_converters(rules.converters, declared_schemas, find_columns)
            for declared in rules.validators:
                _check_validator(declared, schemas, find_columns)
            for sink in rules.sinks:
                _check_sink(sink)
            if rules.strategy is not None:
                check_strategy(rules.strategy, merges)
        except ManifestError as error:
            place = f"in line {error.line}{f', {error.path}' if error.path else ''}"
            known = () if error.nearest is None else (error.nearest,)
            (at / "attachments" / "items" / index / "content").reject(f"{place}: {error.expected}", error.found, known)


def _check_reader(declared: DeclaredReader, reads: Sequence[ReadStep]) -> None:
    kind, parameters = _read_declared(declared, Reader)
    for read in reads:
        schema = find_declared(read)
        if schema is None or not isinstance(read, ReadStepNdJson):
            found = f"a read step {type(read).__name__.removeprefix('ReadStep')}"
            found += " without a schema" if schema is None else ""
            reject_parameter(declared, "kind", expected=f"{declared.name} where {NEEDED_STEP}", found=found, known=())
        try:
            kind(parameters, tuple(schema.names))
        except ParameterError as error:
            _reject(declared, error)


def _check_converters(
    converters: Sequence[DeclaredConverter], schemas: Sequence[pa.Schema], find_columns: FindColumns
) -> None:
    left: list[pa.Schema] = [*schemas]
    for declared in converters:
        kind, parameters = _read_declared(declared, Converter)
        try:
            rows = declared.find_call(None, find_columns).rows
            left = [kind(parameters, ConverterContext(schema=schema, rows=rows)).schema for schema in left]
        except ColumnsUnknownError:
            left = []  # what follows is checked by the first ingest
        except UnknownDatasetError as error:
            _reject_dataset(declared, error)
        except ParameterError as error:
            _reject(declared, error)


def _check_validator(declared: DeclaredValidator, schemas: Iterable[pa.Schema], find_columns: FindColumns) -> None:
    kind, parameters = _read_declared(declared, Validator)
    try:
        rows = declared.find_rows(find_columns)
        for schema in schemas:
            kind(parameters, Context(schema=schema, now_ms=0, rows=rows))
    except UnknownDatasetError as error:
        _reject_dataset(declared, error)
    except ParameterError as error:
        _reject(declared, error)


def _check_sink(declared: DeclaredSink) -> None:
    kind, parameters = _read_declared(declared, Sink)
    try:
        kind(parameters, SinkContext())
    except ParameterError as error:
        _reject(declared, error)


def _read_declared(declared: DeclaredPlugIn, base: type) -> tuple[Any, Any]:
    place = declared.kinds.find_place(declared.name)
    if place is None:
        expected = f"a {declared.word} that is installed here ({declared.kinds.describe_installed()})"
        known = declared.kinds.installed()
        reject_parameter(declared, "kind", expected=expected, found=declared.name, known=known)
    kind = load_plug_in(base, declared.name, *place)
    try:
        return kind, read_parameters(kind, declared.parameters)
    except ParameterError as error:
        _reject(declared, error)


def _reject_dataset(declared: DeclaredPlugIn, error: UnknownDatasetError) -> NoReturn:
    found = str(declared.parameters.get("dataset"))
    reject_parameter(declared, "dataset", expected="a dataset", found=f"{found} ({error})", known=())


def _reject(declared: DeclaredPlugIn, error: ParameterError) -> NoReturn:
    known = tuple(error.known)
    reject_parameter(declared, error.parameter, expected=error.expected, found=error.found, known=known)


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """Checks manifests of roots before datasets are made of them; transforms are graded by their engine."""

    sources: SourceReader
    engine: IngestEngine
    find_columns: FindColumns

    def check(self, snapshot: DatasetSnapshot) -> None:
        """Reject a manifest that could never be pulled or pushed to.

        Raises:
            SnapshotError: What is wrong first, in the order of events.
        """
        vocabulary = Vocabulary()
        for event in snapshot.metadata:
            vocabulary = Vocabulary.of(event) if isinstance(event, SetVocab) else vocabulary
        converters = list_converters(snapshot.metadata)
        reads, schemas, merges = [], [], []
        for index, event in enumerate(snapshot.metadata):
            at = At() / "metadata" / index
            if isinstance(event, SetPollingSource):
                self.sources.check(event, at)
            if isinstance(event, SetPollingSource | AddPushSource):
                check_encoding(event.read, at / "read")
                self.engine.check_source(
                    replace(event, read=as_utf8(event.read)), vocabulary, at, has_converters=bool(converters)
                )
                reads.append(event.read)
                merges.append(event.merge)
                columns = find_row_columns(event, vocabulary, converters, at, self.find_columns)
                schemas += [] if columns is None else [columns.schema]
        for index, event in enumerate(snapshot.metadata):
            if isinstance(event, SetAttachments):
                check_attachments(event, At() / "metadata" / index)
                check_rules(event, At() / "metadata" / index, reads, schemas, self.find_columns, merges)
