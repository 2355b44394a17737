"""``${{ env.NAME || 'default' }}`` in the texts of a source definition.

A template is published as written and filled in when data is fetched, so a secret of the environment never enters a
chain. Filling in is a plain function of the text and the environment it is given.

Grammar: ``${{`` alternative ( ``||`` alternative )* ``}}``; an alternative is ``env.NAME``, a ``'text'`` in single
quotes, or a number, which stands for its own text. The first alternative that exists is used. A text without ``${{`` is
left alone, and what is filled in is not looked at again.

Texts with templates: URL and header values of ``Url``; image, command, arguments and values of variables of
``Container``; the node's URL of ``EthereumLogs``; user name and password of ``Mqtt``.

Source: ODF "Polling Sources" and the reference implementation's behaviour.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from odf_protocol.errors import MalformedError, NotFoundError
from odf_protocol.events import (
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepMqtt,
    FetchStepUrl,
)
from odf_protocol.manifest.errors import Step

_OPEN: Final = "${{"
_CLOSE: Final = "}}"
_ALTERNATIVE: Final = re.compile(
    r"\s*(?:env\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)|'(?P<text>[^']*)'|(?P<number>-?[0-9][0-9A-Za-z_.]*))\s*"
)

#: Longest template between its braces; no honest name and default come near. # guess
MAX_TEMPLATE_CHARACTERS: Final = 4096


class TemplateError(MalformedError):
    """A ``${{ }}`` that does not follow the grammar.

    Attributes:
        index: Of the character in the text where the grammar is left, from 0.
    """

    def __init__(self, index: int, *, expected: str, found: str) -> None:
        super().__init__("template", where=f"character {index + 1}", expected=expected, found=found)
        self.index = index


class MissingVariableError(NotFoundError):
    """No alternative of a template exists.

    Attributes:
        names: The variables that were looked for, in order.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"environment variable {' or '.join(names)} is not set and the template gives no default")
        self.names = names


def substitute(text: str, environment: Mapping[str, str]) -> str:
    """Fill in every template of ``text``.

    Raises:
        TemplateError: A template is malformed.
        MissingVariableError: A template names only variables that ``environment`` lacks.
    """
    parts: list[str] = []
    position = 0
    for start, end, alternatives in _iter_templates(text):
        parts.append(text[position:start])
        parts.append(_choose(alternatives, environment))
        position = end
    parts.append(text[position:])
    return "".join(parts)


def find_variables(text: str) -> tuple[str, ...]:
    """Name the variables that ``text`` refers to, in order, so that a manifest can be checked before it is run.

    Raises:
        TemplateError: A template is malformed.
    """
    return tuple(value for _, _, found in _iter_templates(text) for is_name, value in found if is_name)


_Alternatives = list[tuple[bool, str]]


def _choose(alternatives: _Alternatives, environment: Mapping[str, str]) -> str:
    for is_name, value in alternatives:
        if not is_name:
            return value
        if value in environment:
            return environment[value]
    raise MissingVariableError(tuple(name for _, name in alternatives))


def _iter_templates(text: str) -> "list[tuple[int, int, _Alternatives]]":
    """Start, end and alternatives of each template."""
    templates = []
    position = text.find(_OPEN)
    while position >= 0:
        end, alternatives = _parse_template(text, position)
        templates.append((position, end, alternatives))
        position = text.find(_OPEN, end)
    return templates


def _parse_template(text: str, start: int) -> tuple[int, _Alternatives]:
    alternatives: _Alternatives = []
    position = start + len(_OPEN)
    limit = position + MAX_TEMPLATE_CHARACTERS
    while True:
        match = _ALTERNATIVE.match(text, position, limit)
        if match is None:
            raise TemplateError(position, expected="env.NAME, 'text' or a number", found=_shown(text, position))
        name, quoted = match.group("name"), match.group("text")
        default = match.group("number") if quoted is None else quoted
        alternatives.append((True, name) if name is not None else (False, default))
        position = match.end()
        if text.startswith(_CLOSE, position):
            return position + len(_CLOSE), alternatives
        if not text.startswith("||", position):
            raise TemplateError(position, expected="'||' or '}}'", found=_shown(text, position))
        position += len("||")


def _shown(text: str, position: int) -> str:
    return repr(text[position : position + 20]) if position < len(text) else "the end"


def substitute_in_fetch(fetch: FetchStep, environment: Mapping[str, str]) -> FetchStep:
    """Fill in every template of a step, just before it is run; the result may hold secrets and is not published.

    Raises:
        TemplateError: A template is malformed.
        MissingVariableError: A template names only variables that ``environment`` lacks.
    """
    return rewrite_fetch(fetch, lambda _, text: substitute(text, environment))


def rewrite_fetch(fetch: FetchStep, rewrite: Callable[[tuple[Step, ...], str], str]) -> FetchStep:
    """Apply ``rewrite(path in the step, text)`` to every text that may hold templates."""
    match fetch:
        case FetchStepUrl():
            headers = fetch.headers and tuple(
                replace(header, value=rewrite(("headers", index, "value"), header.value))
                for index, header in enumerate(fetch.headers)
            )
            return replace(fetch, url=rewrite(("url",), fetch.url), headers=headers)
        case FetchStepContainer():
            env = fetch.env and tuple(
                replace(variable, value=_rewrite_optional(rewrite, ("env", index, "value"), variable.value))
                for index, variable in enumerate(fetch.env)
            )
            return replace(
                fetch,
                image=rewrite(("image",), fetch.image),
                command=_rewrite_list(rewrite, "command", fetch.command),
                args=_rewrite_list(rewrite, "args", fetch.args),
                env=env,
            )
        case FetchStepEthereumLogs():
            return replace(fetch, node_url=_rewrite_optional(rewrite, ("nodeUrl",), fetch.node_url))
        case FetchStepMqtt():
            username = _rewrite_optional(rewrite, ("username",), fetch.username)
            return replace(fetch, username=username, password=_rewrite_optional(rewrite, ("password",), fetch.password))
    return fetch


_Rewrite = Callable[[tuple[Step, ...], str], str]


def _rewrite_optional(rewrite: _Rewrite, path: tuple[Step, ...], text: str | None) -> str | None:
    return None if text is None else rewrite(path, text)


def _rewrite_list(rewrite: _Rewrite, name: str, texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return texts and tuple(rewrite((name, index), text) for index, text in enumerate(texts))
