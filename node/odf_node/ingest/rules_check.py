"""Rules about bad rows, checked where a manifest is added: names, parameters, and columns where they are declared.

Source: clauses VALID-1 in ``spec/validation.md`` and ING-18 in ``spec/ingest.md``.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from odf_engines.ingest.columns import columns_of, rename_reserved
from odf_engines.ingest.source_schema import find_declared
from odf_engines.validation.contract import Context, ParameterError
from odf_engines.validation.plug_in_names import installed_validators, validator_place
from odf_engines.validation.plug_ins import load_validator, read_parameters
from odf_node.ingest.ingest_rules import RULES_PATH, DeclaredValidator, parse_rules, refuse_parameter
from odf_protocol.events import AddPushSource, SetAttachments, SetPollingSource
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.snapshot_error import At
from odf_protocol.vocabulary import Vocabulary

__all__ = ["check_rules", "find_row_schema"]


def find_row_schema(source: SetPollingSource | AddPushSource, vocabulary: Vocabulary) -> pa.Schema | None:
    """Find the columns of the rows that a source's validators see; None where only a file or a query will tell.

    Args:
        source: One that an engine has checked.
        vocabulary: Names of the dataset's system columns.
    """
    declared = find_declared(source.read)
    if declared is None or source.preprocess is not None:
        return None
    found = declared if source.read.schema is not None else rename_reserved(declared, source.merge, vocabulary)
    return columns_of(found, source.merge, vocabulary, None).schema


def check_rules(event: SetAttachments, at: At, schemas: Sequence[pa.Schema]) -> None:
    """Refuse rules that cannot be followed.

    Args:
        event: With attachments; those that are none of ours are not looked at.
        at: Its place.
        schemas: Columns of the rows of each source, as far as they are known.

    Raises:
        SnapshotError: A rule is wrong.
    """
    for index, item in enumerate(event.attachments.items):
        if item.path != RULES_PATH:
            continue
        try:
            for declared in parse_rules(item.content).validators:
                _check_validator(declared, schemas)
        except ManifestError as error:
            place = f"in line {error.line}{f', {error.path}' if error.path else ''}"
            known = () if error.nearest is None else (error.nearest,)
            (at / "attachments" / "items" / index / "content").reject(f"{place}: {error.expected}", error.found, known)


def _check_validator(declared: DeclaredValidator, schemas: Iterable[pa.Schema]) -> None:
    place = validator_place(declared.name)
    if place is None:
        known = installed_validators()
        expected = f"a validator that is installed here ({', '.join(known)})"
        refuse_parameter(declared, "kind", expected=expected, found=declared.name, known=known)
    kind = load_validator(declared.name, *place)
    try:
        parameters = read_parameters(kind, declared.parameters)
        for schema in schemas:
            kind(parameters, Context(schema=schema, now_ms=0))
    except ParameterError as error:
        refuse_parameter(
            declared, error.parameter, expected=error.expected, found=error.found, known=tuple(error.known)
        )
