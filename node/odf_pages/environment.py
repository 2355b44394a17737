"""The library of templates, as pages use it; loaded with the first page, as a node that shows none starts without.

Source: clause PAGES-8 in ``spec/plug-ins/pages.md``.
"""

from functools import cache
from pathlib import Path

import jinja2

from odf_node.wording import count_of
from odf_pages.texts import show_cell, show_link, show_text


@cache
def make_environment() -> jinja2.Environment:
    """Make it once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"text": show_text, "cell": show_cell, "link_to": show_link, "number": _number}
    environment.globals |= {"count_of": count_of}
    return environment


def _number(value: int) -> str:
    return f"{value:,}"
