"""Variables of the environment in the fetch step of a polling source.

Source: "Templates" in ``spec/manifests.md``.
"""

from collections.abc import Mapping
from dataclasses import replace

from odf_protocol.events import FetchStep, FetchStepFilesGlob, FetchStepUrl

__all__ = ["fill_in", "list_variables"]


def list_variables(step: FetchStep) -> tuple[str, ...]:
    """Name the variables with which whoever runs a node may say where a source is."""
    from odf_protocol.manifest.templates import find_variables

    match step:
        case FetchStepUrl():
            return find_variables(step.url)
        case FetchStepFilesGlob():
            return find_variables(step.path)
        case _:
            return ()


def fill_in(step: FetchStep, environment: Mapping[str, str]) -> FetchStep:
    """Put values of the environment where a fetch step names them (``${{ env.NAME || 'default' }}``).

    Raises:
        TemplateError: A template is not written as one, or names a variable that is not set and has no default.
    """
    from odf_protocol.manifest.templates import substitute

    match step:
        case FetchStepUrl():
            headers = step.headers and tuple(
                replace(header, value=substitute(header.value, environment)) for header in step.headers
            )
            return replace(step, url=substitute(step.url, environment), headers=headers)
        case FetchStepFilesGlob():
            return replace(step, path=substitute(step.path, environment))
        case _:
            return step
