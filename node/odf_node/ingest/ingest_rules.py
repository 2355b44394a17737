"""What a manifest says of rows on their way: converters, validators, sinks, and limits on how many may be bad.

It stands in an attachment, which other ODF nodes keep, show and do not read: the chain says what was applied, and stays
one that everybody can read.

Source: clauses CONV-1 in ``spec/conversion.md``, VALID-1 and VALID-8 in ``spec/validation.md``; ING-15 in
``spec/ingest.md``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from odf_node.ingest.batch import BatchLimits
from odf_node.ingest.declared_plug_ins import (
    RULES_PATH,
    DeclaredConverter,
    DeclaredReader,
    DeclaredSink,
    DeclaredValidator,
    read_converters,
    read_reader,
    read_sinks,
    read_validators,
    reject,
)
from odf_node.ingest.declared_strategy import DeclaredStrategy, read_strategy
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import find_nearest
from odf_protocol.manifest.nodes import MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.yaml_text import parse_yaml

__all__ = ["RULES_PATH", "IngestRules", "find_rules", "parse_rules"]

_VALIDATORS: Final = "validators"
_READER: Final = "reader"
_CONVERTERS: Final = "converters"
_SINKS: Final = "sinks"
_STRATEGY: Final = "merge"


@dataclass(frozen=True, slots=True)
class IngestRules:
    """What is declared; where nothing is, the usual limits."""

    limits: BatchLimits = field(default_factory=BatchLimits)
    validators: tuple[DeclaredValidator, ...] = ()
    converters: tuple[DeclaredConverter, ...] = ()
    reader: DeclaredReader | None = None
    sinks: tuple[DeclaredSink, ...] = ()
    strategy: DeclaredStrategy | None = None


def find_rules(attachments: SetAttachments | None) -> IngestRules:
    """Read the rules that a dataset declares.

    Raises:
        ManifestError: They cannot be read.
    """
    for item in attachments.attachments.items if attachments else ():
        if item.path == RULES_PATH:
            return parse_rules(item.content)
    return IngestRules()


def parse_rules(text: str) -> IngestRules:
    """Read rules.

    Raises:
        ManifestError: They cannot be read; it names the place in the text and the nearest word.
    """
    known = (*_LIMITS, _READER, _CONVERTERS, _VALIDATORS, _STRATEGY, _SINKS)
    documents = parse_yaml(text, source_name=RULES_PATH)
    if len(documents) != 1 or not isinstance(documents[0], MapNode):
        reject(None, "", f"a map with {', '.join(known)}, such as 'largestBadShare: 0.1'", text[:60])
    limits: dict[str, Any] = {}
    validators: tuple[DeclaredValidator, ...] = ()
    converters: tuple[DeclaredConverter, ...] = ()
    reader: DeclaredReader | None = None
    sinks: tuple[DeclaredSink, ...] = ()
    strategy: DeclaredStrategy | None = None
    for key, node in documents[0].entries:
        if key.text == _VALIDATORS:
            validators = read_validators(node, _VALIDATORS)
        elif key.text == _READER:
            reader = read_reader(node, _READER)
        elif key.text == _CONVERTERS:
            converters = read_converters(node, _CONVERTERS)
        elif key.text == _SINKS:
            sinks = read_sinks(node, _SINKS)
        elif key.text == _STRATEGY:
            strategy = read_strategy(node, _STRATEGY)
        elif key.text in _LIMITS:
            attribute, read = _LIMITS[key.text]
            limits[attribute] = read(node, key.text)
        else:
            reject(key, key.text, f"one of {', '.join(known)}", key.text, find_nearest(key.text, known))
    return IngestRules(BatchLimits(**limits), validators, converters, reader, sinks, strategy)


def _read_share(node: Node, path: str) -> float:
    text = node.text if isinstance(node, ScalarNode) else ""
    if not re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", text, re.ASCII) or float(text) > 1:
        reject(node, path, f"a share from 0 to 1, such as '{path}: 0.1'", describe(node))
    return float(text)


def _read_count(node: Node, path: str) -> int:
    text = node.text if isinstance(node, ScalarNode) else ""
    if not re.fullmatch(r"[0-9]{1,15}", text, re.ASCII):
        reject(node, path, f"a number of rows, such as '{path}: 100'", describe(node))
    return int(text)


def _read_counts(node: Node, path: str) -> dict[str, int]:
    if not isinstance(node, MapNode):
        reject(node, path, f"numbers of rows by code, such as '{path}: {{duplicate: 0}}'", describe(node))
    return {key.text: _read_count(value, f"{path}.{key.text}") for key, value in node.entries}


def _read_multiple(node: Node, path: str) -> float:
    text = node.text if isinstance(node, ScalarNode) else ""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text, re.ASCII):
        reject(node, path, f"a multiple of the rows of the batch before, such as '{path}: 0.5'", describe(node))
    return float(text)


_LIMITS: Final[dict[str, tuple[str, Callable[[Node, str], Any]]]] = {
    "largestBadShare": ("largest_bad_share", _read_share),
    "largestBadRows": ("largest_bad_rows", _read_count),
    "largestBadRowsPerCode": ("largest_bad_rows_per_code", _read_counts),
    "leastOfLast": ("least_of_last", _read_multiple),
    "mostOfLast": ("most_of_last", _read_multiple),
    "largestRetractedShare": ("largest_retracted_share", _read_share),
}
