"""What can be known of a source's declaration before there is a file: columns, types and options that are not built.

The checks are those that an ingest makes; here they name the field at fault. Runs outside of the sandbox only.

Source: spec/ingest.md ING-18.
"""

import pyarrow as pa

from odf_engines.dialects.translation import DIALECTS
from odf_engines.errors import EngineMissingError
from odf_engines.ingest.columns import InvalidColumnsError, columns_of, rename_reserved
from odf_engines.ingest.read_options import UnsupportedOptionError, check_encoding, parse_dialect, parse_times
from odf_engines.ingest.source_schema import find_declared
from odf_engines.preprocess_engines import find_preprocess_engine
from odf_engines.spark.ingest.text_forms import text_form_of
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    AddPushSource,
    MergeStrategy,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepParquet,
    SetPollingSource,
    Transform,
)
from odf_protocol.manifest.snapshot_error import At
from odf_protocol.vocabulary import Vocabulary

__all__ = ["check_source"]

_COLUMN_LISTS = {"primary_key": "primaryKey", "compare_columns": "compareColumns"}


def check_source(source: SetPollingSource | AddPushSource, vocabulary: Vocabulary, at: At) -> None:
    """See ``IngestEngine``."""
    if source.preprocess is not None:
        _check_preprocess(source.preprocess, at / "preprocess")
    read = source.read
    here = at / "read"
    if isinstance(read, ReadStepEsriShapefile):
        (here / "kind").reject(
            "a format that is built here (Shapefile is not yet: convert it to GeoJson)", "EsriShapefile"
        )
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
                text_form_of("text", field.type, times)
        except UnsupportedError:
            place = here / "ddlSchema" / index if read.schema is None else here / "schema" / "fields" / index / "type"
            place.reject(f"a type that text can denote for the column {field.name}", str(field.type))
    # What queries make of the columns, nobody knows yet.
    if source.preprocess is None:
        _check_columns(declared, source.merge, vocabulary, at, is_odf=read.schema is not None)


def _check_preprocess(transform: Transform, at: At) -> None:
    try:
        find_preprocess_engine(transform.engine, "spark")
    except EngineMissingError as error:
        expected = f"an engine that is here ({', '.join(error.installed)}), and a query in its dialect"
        if error.engine.lower() in DIALECTS:
            expected += "; add --as-spark translates it"
        (at / "engine").reject(expected, error.engine, error.installed)


def _check_columns(declared: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary, at: At, *, is_odf: bool) -> None:
    declared = declared if is_odf else rename_reserved(declared, merge, vocabulary)
    names = [*declared.names, *({vocabulary.event_time} - set(declared.names))]
    for attribute, option in _COLUMN_LISTS.items():
        for index, name in enumerate(getattr(merge, attribute, None) or ()):
            if name not in names:
                (at / "merge" / option / index).reject(f"a column of the source ({', '.join(names)})", name, names)
    try:
        columns_of(declared, merge, vocabulary, None)
    except InvalidColumnsError as error:
        (at / "read").reject("columns that the dataset can have", str(error))
