"""Variables of the environment in the fetch step of a polling source.

Source: "Templates" in ``spec/manifests.md``.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from odf_protocol import manifest
from odf_protocol.events import EnvVar, FetchStep, FetchStepContainer, FetchStepFilesGlob, FetchStepUrl
from odf_protocol.manifest import find_variables

_OWN: Final = "ODF_NODE_"
_USER_INFO: Final = re.compile(r"[a-z][a-z0-9+.-]*://((?:\$\{\{.*?\}\}|[^/?#@])*)@", re.IGNORECASE)
_WEB: Final = re.compile(r"https?:", re.IGNORECASE)


def list_variables(step: FetchStep) -> tuple[str, ...]:
    """Name the variables with which whoever runs a node may say where a source is."""
    match step:
        case FetchStepUrl():
            return find_variables(step.url)
        case FetchStepFilesGlob():
            return find_variables(step.path)
        case FetchStepContainer():
            return find_variables(step.image)
        case _:
            return ()


def digest_of_place(step: FetchStep) -> bytes | None:
    """Tell one URL from another without keeping it, as it may hold a secret; 32 bytes, None for other sources.

    A new password before the @ leads to the same place; a user of the web may be shown another one.
    """
    if not isinstance(step, FetchStepUrl):
        return None
    found = None if _WEB.match(step.url) else _USER_INFO.match(step.url)
    place = step.url if found is None else step.url[: found.start(1)] + step.url[found.end() :]
    return hashlib.sha3_256(place.encode()).digest()


def fill_in(step: FetchStep, environment: Mapping[str, str]) -> FetchStep:
    """Put values of the environment where a fetch step names them (``${{ env.NAME || 'default' }}``).

    Variables of this program are none of a manifest's business: ``ODF_NODE_TOKEN`` opens other nodes.

    Raises:
        TemplateError: A template is not written as one, or names a variable that is not set and has no default.
    """
    environment = {name: value for name, value in environment.items() if not name.startswith(_OWN)}
    match step:
        case FetchStepUrl():
            headers = step.headers and tuple(
                replace(header, value=manifest.substitute(header.value, environment)) for header in step.headers
            )
            return replace(step, url=_fill_in_url(step.url, environment), headers=headers)
        case FetchStepFilesGlob():
            return replace(step, path=_fill_in_url(step.path, environment))
        case FetchStepContainer():
            # A variable without a value is that of the node, as its name in a template is.
            named = step.env and tuple(each if each.value is not None else _as_template(each) for each in step.env)
            return manifest.substitute_in_fetch(replace(step, env=named), environment)
        case _:
            return manifest.substitute_in_fetch(step, environment)


def _as_template(variable: EnvVar) -> EnvVar:
    return replace(variable, value=f"${{{{ env.{variable.name} }}}}")


def _fill_in_url(url: str, environment: Mapping[str, str]) -> str:
    """Fill in a URL; before the @ of a server values are taken as they are, whatever is in a password (ING-34)."""
    found = _USER_INFO.match(url)
    if found is None:
        return manifest.substitute(url, environment)
    start, end = found.span(1)
    named = manifest.find_variables(found[1])
    quoted = {name: quote(environment[name], safe="", errors="replace") for name in named if name in environment}
    return url[:start] + manifest.substitute(found[1], quoted) + manifest.substitute(url[end:], environment)
