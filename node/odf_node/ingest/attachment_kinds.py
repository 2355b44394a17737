"""Attachments of datasets that plug-ins give a meaning: what a plug-in of the group ``odf_node.attachments`` is.

Source: clause PLUG-10 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odf_node.plug_ins import contained, load_plug_ins
from odf_protocol.events import SetAttachments
from odf_protocol.manifest.errors import At, ManifestError

GROUP: Final = "odf_node.attachments"


@dataclass(frozen=True, slots=True)
class AttachmentKind:
    """An attachment of one path.

    Attributes:
        path: The attachment's, such as ``odf-node/schedule.yaml``.
        check: Raises a ManifestError where the attachment's text cannot be followed.
    """

    path: str
    check: Callable[[str], None]


def check_attachments(event: SetAttachments, at: At) -> None:
    """Reject an attachment that the plug-in of its path cannot follow.

    Args:
        event: With attachments; those of paths that no plug-in knows are not looked at.
        at: Its place.

    Raises:
        SnapshotError: It is such.
    """
    for name, kind in load_plug_ins(GROUP, AttachmentKind).items():
        for index, item in enumerate(event.attachments.items):
            if item.path == kind.path:
                _check(name, kind, item.content, at / "attachments" / "items" / index / "content")


def _check(name: str, kind: AttachmentKind, text: str, content: At) -> None:
    rejected: ManifestError | None = None
    with contained(GROUP, name):
        try:
            kind.check(text)
        except ManifestError as error:
            rejected = error
    if rejected is not None:
        place = f"in line {rejected.line}{f', {rejected.path}' if rejected.path else ''}"
        known = () if rejected.nearest is None else (rejected.nearest,)
        content.reject(f"{place}: {rejected.expected}", rejected.found, known)
