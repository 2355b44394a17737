"""What a dataset says itself of when it is to be up to date: an attachment of its chain, as its schedule is one.

``KIND`` is found by its entry point in the group ``odf_node.attachments``.

Source: clause CONVERGE-15 in ``spec/plug-ins/convergence.md``.
"""

from dataclasses import dataclass
from typing import Final, NoReturn

from odf_node.configuration.declaration import PRIORITIES
from odf_node.configuration.schedule_times import Cron, parse_cron, parse_zone
from odf_node.ingest.attachment_kinds import AttachmentKind
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import ManifestError, find_nearest
from odf_protocol.manifest.nodes import MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.yaml_text import parse_yaml

CONVERGE_PATH: Final = "odf-node/converge.yaml"
"""The attachment in which a manifest says it."""

_KEYS: Final = ("by", "timeZone", "priority")
_EXAMPLE: Final = "such as 'by: 0 7 * * mon-fri', with a timeZone, or 'priority: high'"


@dataclass(frozen=True, slots=True)
class DeclaredGoal:
    """That a dataset is to be up to date: as soon as possible, or ``by`` the times of a cron expression."""

    by: Cron | None = None
    priority: int = 0


def find_goal(attachments: SetAttachments | None) -> DeclaredGoal | None:
    """Find what a dataset declares; None: nothing.

    Raises:
        ManifestError: It cannot be followed.
    """
    for item in attachments.attachments.items if attachments else ():
        if item.path == CONVERGE_PATH:
            return parse_goal(item.content)
    return None


def parse_goal(text: str) -> DeclaredGoal:
    """Read what a dataset declares.

    Raises:
        ManifestError: It cannot be followed; it names the place in the text and the nearest word.
    """
    documents = parse_yaml(text, source_name=CONVERGE_PATH)
    if len(documents) != 1 or not isinstance(documents[0], MapNode):
        _reject(None, "", f"a map with {', '.join(_KEYS)}, {_EXAMPLE}", text[:60])
    found: dict[str, ScalarNode] = {}
    for key, node in documents[0].entries:
        if key.text not in _KEYS:
            _reject(key, key.text, f"one of {', '.join(_KEYS)}", key.text, find_nearest(key.text, _KEYS))
        if not isinstance(node, ScalarNode) or node.is_null:
            _reject(node, key.text, f"a text, {_EXAMPLE}", describe(node))
        found[key.text] = node
    zone, by, priority = found.get("timeZone"), found.get("by"), found.get("priority")
    if zone is not None and by is None:
        _reject(zone, "timeZone", "a timeZone only with by", zone.text)
    if priority is not None and priority.text not in PRIORITIES:
        _reject(priority, "priority", f"one of {', '.join(PRIORITIES)}", priority.text)
    if zone is not None:
        try:
            parse_zone(zone.text)
        except ValueError as error:
            _reject(zone, "timeZone", _expected(error), zone.text)
    cron = None if by is None else _parse_by(by, "UTC" if zone is None else zone.text)
    rank = 0 if priority is None else 1 - PRIORITIES.index(priority.text)
    return DeclaredGoal(cron, rank)


def _parse_by(node: ScalarNode, zone: str) -> Cron:
    try:
        return parse_cron(node.text, zone)
    except ValueError as error:
        _reject(node, "by", _expected(error), node.text)


def _expected(error: ValueError) -> str:
    return str(error).removeprefix("expected ").partition(", found ")[0]


def _reject(node: Node | None, path: str, expected: str, found: str, nearest: str | None = None) -> NoReturn:
    line, column = (1, 1) if node is None else (node.line, node.column)
    raise ManifestError(CONVERGE_PATH, line, column, path=path, expected=expected, found=found, nearest=nearest)


def _check(text: str) -> None:
    parse_goal(text)


KIND: Final = AttachmentKind(CONVERGE_PATH, _check)
