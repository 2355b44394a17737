"""Readers, converters, validators and sinks as manifests declare them, each with its place in the text.

Source: clauses READ-1 in ``spec/readers.md``, VALID-1 in ``spec/validation.md``; CONV-1, CONV-6 and CONV-8 in
``spec/conversion.md``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NoReturn, TypedDict

from odf_engines.contract import ConverterCall, ReaderCall, ReferencedRows, ValidatorCall
from odf_engines.plug_in_names import CONVERTERS, READERS, SINKS, VALIDATORS, PlugInNames
from odf_node.errors import UsageError
from odf_protocol.errors import UnsupportedError
from odf_protocol.manifest.errors import ManifestError, find_nearest
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, describe

RULES_PATH: Final = "odf-node/ingest.yaml"
"""The attachment in which a manifest states its rules."""

SECRET_PREFIX: Final = "ODF_NODE_SECRET_"  # noqa: S105 - of names
"""Begins the variables of the environment that hold secrets; their names follow."""

MAX_PLUG_INS: Final = 100  # guess: a few for each column of a wide table

_KIND, _SEVERITY, _SECRET, _DATASET = "kind", "severity", "secret", "dataset"
_SEVERITIES: Final = ("Error", "Warning")

FindRows = Callable[[str], ReferencedRows | None]
"""Gives the rows of a dataset of this node by its name, or says what they are like; None where nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeclaredPlugIn:
    """A plug-in as it was declared, with its place in the text."""

    word: ClassVar[str]
    kinds: ClassVar[PlugInNames]
    name: str
    parameters: dict[str, Any]
    node: MapNode
    path: str

    def get_place(self) -> tuple[str, str]:
        """Find module and class.

        Raises:
            UnsupportedError: There is no such plug-in here.
        """
        if (place := self.kinds.find_place(self.name)) is None:
            raise UnsupportedError(self.word, found=self.name, supported=self.kinds.describe_installed())
        return place

    @property
    def dataset_name(self) -> str | None:
        """Name of the dataset that it looks into."""
        dataset = self.parameters.get(_DATASET)
        return dataset if isinstance(dataset, str) else None

    def find_rows(self, find_rows: FindRows) -> ReferencedRows | None:
        """Find the rows of the dataset that it names, None where it names none, or nothing is known of it."""
        return None if self.dataset_name is None else find_rows(self.dataset_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredValidator(_DeclaredPlugIn):
    """A validator as it was declared."""

    word: ClassVar[str] = "validator"
    kinds: ClassVar[PlugInNames] = VALIDATORS
    is_warning: bool

    def find_call(self, find_rows: FindRows) -> ValidatorCall:
        """Say what the engine is asked to call.

        Args:
            find_rows: Gives the rows of a dataset of this node by its name; None: nothing is known of it.

        Raises:
            UnsupportedError: There is no such validator here.
        """
        module, attribute = self.get_place()
        rows, text = self.find_rows(find_rows), json.dumps(self.parameters)
        return ValidatorCall(
            name=self.name, module=module, attribute=attribute, parameters=text, is_warning=self.is_warning, rows=rows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConverter(_DeclaredPlugIn):
    """A converter as it was declared."""

    word: ClassVar[str] = "converter"
    kinds: ClassVar[PlugInNames] = CONVERTERS

    def find_call(self, environment: Mapping[str, str] | None, find_rows: FindRows) -> ConverterCall:
        """Say what the engine is asked to call.

        Args:
            environment: Has the secrets of this node; None: a declaration is only checked, without any.
            find_rows: Gives the rows of a dataset of this node by its name; None: nothing is known of it.

        Raises:
            UnsupportedError: There is no such converter here.
            UsageError: The secret that it names is not set.
        """
        module, attribute = self.get_place()
        secret = None
        if environment is not None and (name := self.parameters.get(_SECRET)) is not None:
            secret = environment.get(f"{SECRET_PREFIX}{name}")
            if not secret:
                raise UsageError(
                    f"{self.path} ({self.name}) needs the secret {name}, which is not set: put it into the variable"
                    f" {SECRET_PREFIX}{name} of the environment of odf-node"
                )
        rows, text = self.find_rows(find_rows), json.dumps(self.parameters)
        return ConverterCall(
            name=self.name, module=module, attribute=attribute, parameters=text, secret=secret, rows=rows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredReader(_DeclaredPlugIn):
    """A reader as it was declared."""

    word: ClassVar[str] = "reader"
    kinds: ClassVar[PlugInNames] = READERS

    def find_call(self) -> ReaderCall:
        """Say what the engine is asked to call.

        Raises:
            UnsupportedError: There is no such reader here.
        """
        module, attribute = self.get_place()
        return ReaderCall(name=self.name, module=module, attribute=attribute, parameters=json.dumps(self.parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSink(_DeclaredPlugIn):
    """A sink as it was declared."""

    word: ClassVar[str] = "sink"
    kinds: ClassVar[PlugInNames] = SINKS


DeclaredPlugIn = DeclaredReader | DeclaredConverter | DeclaredValidator | DeclaredSink


class _Fields(TypedDict):
    name: str
    parameters: dict[str, Any]
    node: MapNode
    path: str


def read_reader(node: Node, path: str) -> DeclaredReader:
    """Read a reader.

    Raises:
        ManifestError: It is none.
    """
    return DeclaredReader(**_read_plug_in(node, path, DeclaredReader))


def read_validators(node: Node, path: str) -> tuple[DeclaredValidator, ...]:
    """Read a list of validators.

    Raises:
        ManifestError: It is none.
    """
    return tuple(_read_validator(item, at) for item, at in _items(node, path))


def read_converters(node: Node, path: str) -> tuple[DeclaredConverter, ...]:
    """Read a list of converters.

    Raises:
        ManifestError: It is none.
    """
    return tuple(DeclaredConverter(**_read_plug_in(item, at, DeclaredConverter)) for item, at in _items(node, path))


def read_sinks(node: Node, path: str) -> tuple[DeclaredSink, ...]:
    """Read a list of sinks.

    Raises:
        ManifestError: It is none.
    """
    return tuple(DeclaredSink(**_read_plug_in(item, at, DeclaredSink)) for item, at in _items(node, path))


def reject_parameter(
    declared: DeclaredPlugIn,
    parameter: str,
    *,
    expected: str,
    found: str,
    known: Sequence[str],
) -> NoReturn:
    """Reject a parameter of a plug-in, with its place.

    Raises:
        ManifestError: Always.
    """
    place: Node = declared.node
    for key, node in declared.node.entries:
        if key.text == parameter:
            place = key if parameter == found else node
    path = f"{declared.path}.{parameter}" if parameter else declared.path
    reject(place, path, expected, found, find_nearest(found, known))


def reject(node: Node | None, path: str, expected: str, found: str, nearest: str | None = None) -> NoReturn:
    """Reject a part of the rules, with its place.

    Raises:
        ManifestError: Always.
    """
    line, column = (1, 1) if node is None else (node.line, node.column)
    raise ManifestError(RULES_PATH, line, column, path=path, expected=expected, found=found, nearest=nearest)


def _items(node: Node, path: str) -> list[tuple[Node, str]]:
    if not isinstance(node, ListNode):
        reject(node, path, f"a list of {path}", describe(node))
    if len(node.items) > MAX_PLUG_INS:
        reject(node, path, f"at most {MAX_PLUG_INS} {path}", str(len(node.items)))
    return [(item, f"{path}[{index}]") for index, item in enumerate(node.items)]


def _read_plug_in(node: Node, path: str, kind: type[DeclaredPlugIn]) -> _Fields:
    expected = f"a {kind.word} ({kind.kinds.describe_installed()})"
    if not isinstance(node, MapNode):
        reject(node, path, f"a map with the {_KIND} of {expected}", describe(node))
    entries = {key.text: value for key, value in node.entries}
    name = entries.pop(_KIND, None)
    if not isinstance(name, ScalarNode):
        reject(node, f"{path}.{_KIND}", expected, describe(name) if name else "nothing")
    parameters = {key: _plain(value) for key, value in entries.items()}
    return {"name": name.text, "parameters": parameters, "node": node, "path": path}


def _read_validator(node: Node, path: str) -> DeclaredValidator:
    fields = _read_plug_in(node, path, DeclaredValidator)
    severity = next((value for key, value in fields["node"].entries if key.text == _SEVERITY), None)
    fields["parameters"].pop(_SEVERITY, None)
    if severity is not None and (not isinstance(severity, ScalarNode) or severity.text not in _SEVERITIES):
        reject(severity, f"{path}.{_SEVERITY}", " or ".join(_SEVERITIES), describe(severity))
    is_warning = isinstance(severity, ScalarNode) and severity.text == _SEVERITIES[1]
    return DeclaredValidator(**fields, is_warning=is_warning)


def _plain(node: Node) -> Any:
    match node:
        case ScalarNode():
            return None if node.is_null else node.text
        case ListNode():
            return [_plain(item) for item in node.items]
        case MapNode():
            return {key.text: _plain(value) for key, value in node.entries}
