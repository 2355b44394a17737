"""Rows of a source ``countdown:N``: N to 1. The one file of an external package that adds a kind of source."""

import json
import secrets
from typing import Final

from odf_node.ports.sources import Fetched, UpToDate
from odf_node.sources.checks import TEMPLATE, check_value
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_protocol.errors import MalformedError
from odf_protocol.events import FetchStep, FetchStepUrl, SourceState
from odf_protocol.manifest.errors import At

_READ: Final = "odf-countdown/read"
"""The kind of a source state: which countdown was read."""


class Countdown(SourceKind):
    """Numbers from N down to 1, once."""

    steps = (FetchStepUrl,)
    schemes = ("countdown",)
    form = "countdown:N"

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        """Reject what is no number."""
        assert isinstance(step, FetchStepUrl)
        if TEMPLATE not in step.url:
            check_value(lambda: parse_number(step.url), at / "url")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        """Write the numbers as lines of JSON."""
        assert isinstance(step, FetchStepUrl)
        if context.state is not None and (context.state.kind, context.state.value) == (_READ, step.url):
            return UpToDate()
        path = context.folder / f"numbers-{secrets.token_hex(8)}"
        rows = [{"number": number} for number in range(parse_number(step.url), 0, -1)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        state = SourceState(source_name="default", kind=_READ, value=step.url)
        return Fetched(path=path, name=step.url, source_state=state, event_time=context.now)


def parse_number(url: str) -> int:
    """Read the number of a URL.

    Raises:
        MalformedError: There is none from 1 to 1000.
    """
    text = url.removeprefix("countdown:")
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1000):
        raise MalformedError("URL of a countdown", expected="countdown:N, N from 1 to 1000", found=url)
    return int(text)


SOURCE: Final = Countdown()
