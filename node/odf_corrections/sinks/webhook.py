"""The sink that tells a receiver of bad rows, as one is told of new blocks.

Source: clauses SINK-2 and SINK-3 in ``spec/plug-ins/corrections.md``; NOTICE-3 and NOTICE-4 in ``spec/notices.md``.
"""

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from odf_engines.validation.contract import ParameterError
from odf_node.ports.notices import find_address_problem
from odf_node.ports.sinks import BadRows, Sink, SinkContext, Told
from odf_protocol.manifest.templates import MissingVariableError, TemplateError, find_variables, substitute

_MAX_BYTES: Final = 1024 * 1024  # guess: what receivers take without being set up for it
_MAX_ROWS: Final = 10_000


class Webhook(Sink):
    """Sends each entry to a receiver: one signed POST, as notices of new blocks are, with the first of its rows."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``url``, perhaps of a variable of the node's environment (``${{ env.HOOK }}``); how many ``rows`` it has.

        Rows that do not fit into 1 MiB are left out, too; ``rowCount`` says how many there are.
        """

        url: str
        rows: int = 100

    def __init__(self, parameters: Any, context: SinkContext) -> None:
        super().__init__(parameters, context)
        if not 0 <= parameters.rows <= _MAX_ROWS:
            raise ParameterError("rows", expected=f"0 to {_MAX_ROWS}", found=str(parameters.rows))
        try:
            problem = None if find_variables(parameters.url) else find_address_problem(parameters.url)
        except TemplateError as error:
            raise ParameterError("url", expected="a template", found=str(error)) from error
        if problem is not None:
            raise ParameterError("url", expected=problem.removeprefix("expected "), found="another")

    def deliver(self, entry: BadRows) -> tuple[Told, str]:
        try:
            url = substitute(self.parameters.url, self.context.environment)
        except MissingVariableError:
            names = ", ".join(find_variables(self.parameters.url))
            return Told.UNAVAILABLE, f"the environment has none of {names}"
        if (problem := find_address_problem(url)) is not None:
            return Told.UNAVAILABLE, problem
        return self.context.send(url, self._message(entry))

    def _message(self, entry: BadRows) -> bytes:
        head = {
            "kind": "bad-rows",
            "node": entry.node,
            "dataset": entry.dataset,
            "id": entry.dataset_id,
            "entry": entry.entry,
            "source": entry.source[:1000],
            "setAsideAt": entry.set_aside_at,
            "why": entry.why,
            "rowCount": entry.row_count,
        }
        rows, left = [], _MAX_BYTES - len(json.dumps(head)) - 100
        for row in islice(entry.iter_rows(), self.parameters.rows):
            text = json.dumps(row)
            left -= len(text) + 2
            if left < 0:
                break
            rows.append(text)
        return f'{json.dumps(head)[:-1]}, "rows": [{", ".join(rows)}]}}'.encode()
