"""What can be known of a source's declaration before there is a file: columns, types and options that are not built.

The checks are those that an ingest makes; here they name the field at fault. Runs outside of the sandbox only.

Source: spec/ingest.md ING-18.
"""

import pyarrow as pa

from odf_engines.errors import EngineMissingError
from odf_engines.ingest.columns import InvalidColumnsError, columns_of, rename_reserved
from odf_engines.ingest.read_options import UnsupportedOptionError, check_encoding, parse_dialect, parse_times
from odf_engines.ingest.source_schema import find_declared
from odf_engines.plug_in_names import DIALECTS
from odf_engines.records.converted_texts import describe_form
from odf_engines.registry import find_preprocess_engine
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import AddPushSource, MergeStrategy, ReadStepCsv, ReadStepParquet, SetPollingSource, Transform
from odf_protocol.hashing.arrow0_types import iter_leaves, type_bytes
from odf_protocol.manifest.errors import At
from odf_protocol.vocabulary import Vocabulary


def check_source(
    source: SetPollingSource | AddPushSource,
    vocabulary: Vocabulary,
    at: At,
    *,
    has_converters: bool = False,
) -> None:
    """See ``IngestEngine``."""
    if source.preprocess is not None:
        _check_preprocess(source.preprocess, at / "preprocess")
    read = source.read
    here = at / "read"
    try:
        check_encoding(read)
        times = parse_times(read)
        if isinstance(read, ReadStepCsv):
            parse_dialect(read)
    except UnsupportedOptionError as error:
        (here / error.option).reject(str(error.supported), str(error.found))
    try:
        declared = find_declared(read)
    except UnsupportedError as error:
        (here / "schema").reject("types that a slice can hold", str(error))
    if declared is None:
        return
    for index, field in enumerate(declared):
        try:
            if not isinstance(read, ReadStepParquet):
                describe_form(field.type, times)
        except UnsupportedError:
            place = here / "ddlSchema" / index if read.schema is None else here / "schema" / "fields" / index / "type"
            place.reject(f"a type that text can denote for the column {field.name}", str(field.type))
        if source.preprocess is None and not has_converters:
            check_hashed(
                field, here / "schema" / "fields" / index / "type" if read.schema else here / "ddlSchema" / index
            )
    # What queries make of the columns, nobody knows yet; what converters make of them, the node finds out.
    if source.preprocess is None and not has_converters:
        columns = declared if read.schema is not None else rename_reserved(declared, source.merge, vocabulary)
        check_merge_columns(columns, source.merge, vocabulary, at)


def check_hashed(field: pa.Field, at: At) -> None:
    """Reject a column that no slice can have, as ODF's logical hash has no rule for it."""
    try:
        for leaf in iter_leaves(pa.schema([field])):
            type_bytes(leaf.type, leaf.name)
    except UnsupportedError as error:
        expected = (
            f"a type that ODF's logical hash has for the column {field.name}; String keeps the JSON text of a value"
        )
        at.reject(expected, str(error.found))


def _check_preprocess(transform: Transform, at: At) -> None:
    try:
        find_preprocess_engine(transform.engine)
    except EngineMissingError as error:
        expected = f"an engine that is here ({', '.join(error.installed)}), and a query in its dialect"
        if error.remedy:
            expected += f"; {error.remedy} brings this one"
        elif error.engine.lower() in DIALECTS.installed():
            expected += "; add --as-spark translates it"
        (at / "engine").reject(expected, error.engine, error.installed)


_COLUMN_LISTS = {"primary_key": "primaryKey", "compare_columns": "compareColumns"}


def check_merge_columns(columns: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary, at: At) -> None:
    """Reject a source whose rows lack a column that its merge strategy names, or cannot be rows of a dataset.

    Raises:
        SnapshotError: What is wrong first, with its place.
    """
    names = [*columns.names, *({vocabulary.event_time} - set(columns.names))]
    for attribute, option in _COLUMN_LISTS.items():
        for index, name in enumerate(getattr(merge, attribute, None) or ()):
            if name not in names:
                (at / "merge" / option / index).reject(f"a column of the source ({', '.join(names)})", name, names)
    try:
        columns_of(columns, merge, vocabulary, None)
    except InvalidColumnsError as error:
        (at / "read").reject("columns that the dataset can have", str(error))
