"""Words of others on a page: whole or cut, escaped, and with what would turn or hide text made visible.

Source: clause PAGES-8 in ``spec/plug-ins/pages.md``.
"""

import re
from typing import Final

from markupsafe import Markup, escape
from yarl import URL

MAX_CHARACTERS: Final = 4_000  # guess: some screens
MAX_LINK_CHARACTERS: Final = 2_048  # guess: longer ones break elsewhere

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""What has no shape, turns text around, or ends lines unseen; newline and tab apart.

Source: Unicode "General_Category" Cc, Cf and Cs; Unicode Technical Report 36, section 2.
"""


def show_text(text: object, most: int = MAX_CHARACTERS) -> Markup:
    """Give words of others as HTML: in a box of their own direction, cut, nothing hidden."""
    whole = "" if text is None else str(text)
    return Markup("<bdi>{}{}</bdi>").format(_visible(whole[:most]), _rest(len(whole) - most))


def show_cell(cell: tuple[str, int] | None) -> Markup:
    """Give a cell, as ``RowWindows`` reads it."""
    if cell is None:
        return Markup('<span class="null">null</span>')
    text, characters = cell
    return Markup("<bdi>{}{}</bdi>").format(_visible(text), _rest(characters - len(text)))


def without_hidden(text: str) -> str:
    """Leave out what has no shape, for what somebody is looked for by."""
    return _HIDDEN.sub("", text)


def show_link(address: object) -> Markup:
    """Give an address of others as a link where it is one of the web, else as text."""
    text = "" if address is None else str(address)
    if len(text) > MAX_LINK_CHARACTERS or _HIDDEN.search(text) or not _is_of_the_web(text):
        return show_text(text, MAX_LINK_CHARACTERS)
    return Markup('<a href="{}" rel="noopener noreferrer nofollow external">{}</a>').format(text, show_text(text))


def _visible(text: str) -> Markup:
    parts, end = [], 0
    for found in _HIDDEN.finditer(text):
        parts.append(escape(text[end : found.start()]))
        parts.append(Markup('<span class="hidden-sign">U+{}</span>').format(f"{ord(found[0]):04X}"))
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _rest(characters: int) -> Markup:
    if characters <= 0:
        return Markup("")
    return Markup('<span class="cut"> … {} more characters</span>').format(f"{characters:,}")


def _is_of_the_web(text: str) -> bool:
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in {"http", "https"} and bool(url.host)
