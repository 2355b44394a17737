"""When a dataset says that it is to be pulled: a schedule in an attachment of its chain, as rules of ingests are.

It holds for a dataset of one's own alone, where no schedule of the settings names it (SCHED-11). ``KIND`` is found by
its entry point in the group ``odf_node.attachments``.

Source: clause SCHED-11 in ``spec/plug-ins/schedules.md``.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn

from odf_node.configuration.declaration import PRIORITIES, Schedule
from odf_node.configuration.schedule_times import parse_cron, parse_every, parse_zone
from odf_node.ingest.attachment_kinds import AttachmentKind
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import ManifestError, find_nearest
from odf_protocol.manifest.nodes import MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.yaml_text import parse_yaml

SCHEDULE_PATH: Final = "odf-node/schedule.yaml"
"""The attachment in which a manifest states its schedule."""

_EXAMPLE: Final = "such as 'every: 15m', or 'cron: 30 4 * * *' with a timeZone"


def find_schedule(attachments: SetAttachments | None, name: str) -> Schedule | None:
    """Find the schedule that a dataset declares.

    Args:
        attachments: In force.
        name: Of the dataset, which the schedule names.

    Raises:
        ManifestError: It cannot be followed.
    """
    for item in attachments.attachments.items if attachments else ():
        if item.path == SCHEDULE_PATH:
            return parse_schedule(item.content, name)
    return None


def parse_schedule(text: str, name: str) -> Schedule:
    """Read a schedule.

    Raises:
        ManifestError: It cannot be followed; it names the place in the text and the nearest word.
    """
    documents = parse_yaml(text, source_name=SCHEDULE_PATH)
    if len(documents) != 1 or not isinstance(documents[0], MapNode):
        _reject(None, "", f"a map with {', '.join(_KEYS)}, {_EXAMPLE}", text[:60])
    found: dict[str, Any] = {}
    zone: Node | None = None
    for key, node in documents[0].entries:
        if key.text not in _KEYS:
            _reject(key, key.text, f"one of {', '.join(_KEYS)}", key.text, find_nearest(key.text, _KEYS))
        if not isinstance(node, ScalarNode) or node.is_null:
            _reject(node, key.text, f"a text, {_EXAMPLE}", describe(node))
        attribute, read = _KEYS[key.text]
        zone = node if attribute == "time_zone" else zone
        try:
            found[attribute] = read(node.text)
        except ValueError as error:
            _reject(node, key.text, str(error).removeprefix("expected ").partition(", found ")[0], node.text)
    if ("every" in found) == ("cron" in found):
        _reject(documents[0], "", f"either every or cron, {_EXAMPLE}", "both" if "every" in found else "none")
    if "every" in found and zone is not None:
        _reject(zone, "timeZone", "none with every", describe(zone))
    return Schedule(datasets=name, **found)


def _read_every(text: str) -> str:
    parse_every(text)
    return text


def _read_cron(text: str) -> str:
    parse_cron(text, "UTC")
    return text


def _read_zone(text: str) -> str:
    parse_zone(text)
    return text


def _read_flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


def _read_priority(text: str) -> str:
    if text not in PRIORITIES:
        raise ValueError(f"expected one of {', '.join(PRIORITIES)}")
    return text


_KEYS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "every": ("every", _read_every),
    "cron": ("cron", _read_cron),
    "timeZone": ("time_zone", _read_zone),
    "derivatives": ("derivatives", _read_flag),
    "priority": ("priority", _read_priority),
    "pause": ("pause", _read_every),
}


def _reject(node: Node | None, path: str, expected: str, found: str, nearest: str | None = None) -> NoReturn:
    line, column = (1, 1) if node is None else (node.line, node.column)
    raise ManifestError(SCHEDULE_PATH, line, column, path=path, expected=expected, found=found, nearest=nearest)


def _check(text: str) -> None:
    parse_schedule(text, "")


KIND: Final = AttachmentKind(SCHEDULE_PATH, _check)
