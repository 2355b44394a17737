"""What a manifest says about bad rows: validators that look for them, and limits on how many there may be.

It stands in an attachment, which other ODF nodes keep, show and do not read: the chain says what was applied, and stays
one that everybody can read.

Source: clauses VALID-1 and VALID-8 in ``spec/validation.md``, ING-15 in ``spec/ingest.md``.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from odf_engines.contract import ValidatorCall
from odf_engines.validation.plug_in_names import installed_validators, validator_place
from odf_node.ingest.batch_limits import BatchLimits
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import ManifestError, find_nearest
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, Scalar, describe
from odf_protocol.manifest.yaml_text import parse_yaml

__all__ = ["RULES_PATH", "DeclaredValidator", "IngestRules", "find_rules", "parse_rules", "refuse_parameter"]

RULES_PATH: Final = "odf-node/ingest.yaml"
"""The attachment in which a manifest states its rules."""

MAX_VALIDATORS: Final = 100  # guess: a few for each column of a wide table

_VALIDATORS: Final = "validators"
_KIND, _SEVERITY = "kind", "severity"
_SEVERITIES: Final = ("Error", "Warning")


@dataclass(frozen=True, slots=True)
class DeclaredValidator:
    """A validator as it was declared, with its place in the text."""

    name: str
    parameters: dict[str, Any]
    is_warning: bool
    node: MapNode
    path: str

    def find_call(self) -> ValidatorCall:
        """Say what the engine is asked to call.

        Raises:
            UnsupportedError: There is no such validator here.
        """
        place = validator_place(self.name)
        if place is None:
            raise UnsupportedError("validator", found=self.name, supported=", ".join(installed_validators()))
        text = json.dumps(self.parameters)
        return ValidatorCall(
            name=self.name, module=place[0], attribute=place[1], parameters=text, is_warning=self.is_warning
        )


@dataclass(frozen=True, slots=True)
class IngestRules:
    """What is declared; where nothing is, the usual limits."""

    limits: BatchLimits = field(default_factory=BatchLimits)
    validators: tuple[DeclaredValidator, ...] = ()


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
    documents = parse_yaml(text, source_name=RULES_PATH)
    if len(documents) != 1 or not isinstance(documents[0], MapNode):
        _reject(None, "", f"a map with {', '.join((*_LIMITS, _VALIDATORS))}, such as 'largestBadShare: 0.1'", text[:60])
    limits: dict[str, Any] = {}
    validators: tuple[DeclaredValidator, ...] = ()
    for key, node in documents[0].entries:
        if key.text == _VALIDATORS:
            validators = _read_validators(node)
        elif key.text in _LIMITS:
            attribute, read = _LIMITS[key.text]
            limits[attribute] = read(node, key.text)
        else:
            known = (*_LIMITS, _VALIDATORS)
            _reject(key, key.text, f"one of {', '.join(known)}", key.text, find_nearest(key.text, known))
    return IngestRules(BatchLimits(**limits), validators)


def refuse_parameter(
    declared: DeclaredValidator, parameter: str, *, expected: str, found: str, known: Sequence[str]
) -> NoReturn:
    """Refuse a parameter of a validator, with its place.

    Raises:
        ManifestError: Always.
    """
    place: Node = declared.node
    for key, node in declared.node.entries:
        if key.text == parameter:
            place = key if parameter == found else node
    path = f"{declared.path}.{parameter}" if parameter else declared.path
    _reject(place, path, expected, found, find_nearest(found, known))


def _read_validators(node: Node) -> tuple[DeclaredValidator, ...]:
    if not isinstance(node, ListNode):
        _reject(node, _VALIDATORS, "a list of validators", describe(node))
    if len(node.items) > MAX_VALIDATORS:
        _reject(node, _VALIDATORS, f"at most {MAX_VALIDATORS} validators", str(len(node.items)))
    return tuple(_read_validator(item, f"{_VALIDATORS}[{index}]") for index, item in enumerate(node.items))


def _read_validator(node: Node, path: str) -> DeclaredValidator:
    known = installed_validators()
    if not isinstance(node, MapNode):
        _reject(node, path, f"a map with the {_KIND} of a validator ({', '.join(known)})", describe(node))
    entries = {key.text: value for key, value in node.entries}
    kind, severity = entries.pop(_KIND, None), entries.pop(_SEVERITY, None)
    if not isinstance(kind, Scalar):
        _reject(node, f"{path}.{_KIND}", f"a validator ({', '.join(known)})", describe(kind) if kind else "nothing")
    if severity is not None and (not isinstance(severity, Scalar) or severity.text not in _SEVERITIES):
        _reject(severity, f"{path}.{_SEVERITY}", " or ".join(_SEVERITIES), describe(severity))
    is_warning = isinstance(severity, Scalar) and severity.text == _SEVERITIES[1]
    parameters = {name: _plain(value) for name, value in entries.items()}
    return DeclaredValidator(kind.text, parameters, is_warning, node, path)


def _plain(node: Node) -> Any:
    match node:
        case Scalar():
            return None if node.is_null else node.text
        case ListNode():
            return [_plain(item) for item in node.items]
        case MapNode():
            return {key.text: _plain(value) for key, value in node.entries}


def _read_share(node: Node, path: str) -> float:
    text = node.text if isinstance(node, Scalar) else ""
    if not re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", text, re.ASCII) or float(text) > 1:
        _reject(node, path, f"a share from 0 to 1, such as '{path}: 0.1'", describe(node))
    return float(text)


def _read_count(node: Node, path: str) -> int:
    text = node.text if isinstance(node, Scalar) else ""
    if not re.fullmatch(r"[0-9]{1,15}", text, re.ASCII):
        _reject(node, path, f"a number of rows, such as '{path}: 100'", describe(node))
    return int(text)


def _read_counts(node: Node, path: str) -> dict[str, int]:
    if not isinstance(node, MapNode):
        _reject(node, path, f"numbers of rows by code, such as '{path}: {{duplicate: 0}}'", describe(node))
    return {key.text: _read_count(value, f"{path}.{key.text}") for key, value in node.entries}


def _read_multiple(node: Node, path: str) -> float:
    text = node.text if isinstance(node, Scalar) else ""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text, re.ASCII):
        _reject(node, path, f"a multiple of the rows of the batch before, such as '{path}: 0.5'", describe(node))
    return float(text)


_LIMITS: Final[dict[str, tuple[str, Callable[[Node, str], Any]]]] = {
    "largestBadShare": ("largest_bad_share", _read_share),
    "largestBadRows": ("largest_bad_rows", _read_count),
    "largestBadRowsPerCode": ("largest_bad_rows_per_code", _read_counts),
    "leastOfLast": ("least_of_last", _read_multiple),
    "mostOfLast": ("most_of_last", _read_multiple),
}


def _reject(node: Node | None, path: str, expected: str, found: str, nearest: str | None = None) -> NoReturn:
    line, column = (1, 1) if node is None else (node.line, node.column)
    raise ManifestError(RULES_PATH, line, column, path=path, expected=expected, found=found, nearest=nearest)
