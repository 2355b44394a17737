"""What kinds of sources check alike: passwords that would be published, templates, extras that are not installed.

Source: clauses ING-18 and ING-34 in ``spec/ingest.md``.
"""

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, NoReturn

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.manifest.errors import At

TEMPLATE: Final = "${{"
"""Begins a place that a variable of the environment fills."""

_WHOLE_TEMPLATE: Final = re.compile(r"\$\{\{.*?\}\}")
_ANY_VALUE: Final = "1"
"""Stands for what a template will be: it may be a name, a host, a password and a number of rows."""


def check_value(check: Callable[[], object], at: At) -> None:
    """Run a check, and reject what it rejects, with its place.

    Raises:
        SnapshotError: It raised ``MalformedError`` or ``UnsupportedError``.
    """
    try:
        check()
    except MalformedError as error:
        at.reject(str(error.expected), str(error.found))
    except UnsupportedError as error:
        at.reject(str(error.supported), str(error.found))


def fill_templates(text: str) -> str:
    """Put something in the place of each template, as a check needs it."""
    return _WHOLE_TEMPLATE.sub(_ANY_VALUE, text)


def check_no_password(url: str, at: At, *, end_of_authority: str = "/") -> None:
    """Reject a password that would be published: one in the URL, or that is a default of its template (ING-34).

    Args:
        url: Of a server.
        at: Its place.
        end_of_authority: Characters that stand in no password as it is.

    Raises:
        SnapshotError: There is one.
    """
    authority = re.split(f"[{end_of_authority}]", _published_of(url).partition("://")[2], maxsplit=1)[0]
    user_info, at_sign, _ = authority.rpartition("@")
    if at_sign and user_info.partition(":")[2]:
        _reject_password(at)


def check_secret(text: str, at: At) -> None:
    """Reject a secret of which anything would be published.

    Raises:
        SnapshotError: It is not from the environment alone.
    """
    if _published_of(text):
        _reject_password(at)


def _published_of(text: str) -> str:
    """Leave out what only the environment says: templates without a default."""
    return _WHOLE_TEMPLATE.sub(lambda found: found[0] if "'" in found[0] else "", text)


def _reject_password(at: At) -> NoReturn:
    expected = "a password from the environment, such as ${{ env.SHOP_PASSWORD }}: the manifest is published"
    at.reject(expected, "one that is written out")


def find_missing_extra(extra: str, library: str) -> str | None:
    """Return the command that installs an extra, None where the library that it brings is there."""
    return None if find_spec(library) else f"pip install 'odf-node[{extra}]'"


def check_extra(extra: str, library: str, at: At) -> None:
    """Reject a source of which the library is not installed.

    Raises:
        SnapshotError: It is not.
    """
    if missing := find_missing_extra(extra, library):
        at.reject(f"the extra {extra} of odf-node, which is not installed here ({missing})", "none")
