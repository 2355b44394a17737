"""Templates in fetch steps: which texts may hold them, and filling them in when data is fetched.

Texts with templates: URL and header values of ``Url``; image, command, arguments and values of variables of
``Container``; the node's URL of ``EthereumLogs``; user name and password of ``Mqtt``.

Source: ODF "Polling Sources"; the reference implementation's behaviour for Url and Container.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from odf_protocol.events import (
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepMqtt,
    FetchStepUrl,
)
from odf_protocol.manifest.snapshot_error import Step
from odf_protocol.manifest.templates import substitute


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
