"""Check the answers to the two halves of an ingest whose query another engine runs, on the host.

Source: clauses ENGINE-5 and ENGINE-19 in ``spec/extensions/engine-contract.md``; spec/ingest.md ING-7.
"""

from typing import Any

from odf_engines.contract import IngestRequest, Limits, PreparedRows, QueryResponse
from odf_engines.errors import EngineFailureError
from odf_engines.host.ingest_receive import find_samples, find_stages
from odf_engines.host.output_rows import SizeCheck
from odf_engines.host.outputs import Answer, OutputFolder
from odf_engines.host.query_receive import receive_result


def receive_converted(request: IngestRequest, answer: Answer, outputs: OutputFolder) -> PreparedRows:
    """Take over the rows that an engine converted, and those that it could not.

    Raises:
        EngineFailureError: The answer names no rows.
        LimitExceededError: A file is too large.
    """
    rows = outputs.find(answer, "rows")
    if rows is None:
        raise EngineFailureError("answer.rows: expected a file")
    outputs.check(rows, SizeCheck(most_decoded_bytes=request.limits.decoded_bytes))
    quarantine = outputs.find(answer, "quarantine")
    if quarantine is not None:
        # Shown to people, who read it whole.
        outputs.check(quarantine, SizeCheck(most_decoded_bytes=request.limits.output_bytes))
    stages = find_stages(request, answer)
    records, left_out = answer.get_count("records"), answer.get_count("left_out")
    samples = find_samples(request, answer, outputs)
    return PreparedRows(
        rows=rows, quarantine=quarantine, records=records, left_out=left_out, stages=stages, samples=samples
    )


def receive_preprocessed(_request: Any, answer: Answer, outputs: OutputFolder, *, limits: Limits) -> QueryResponse:
    """Take over what a query made of them; errors as ``receive_query``."""
    return receive_result(answer, outputs, limits, most_decoded_bytes=limits.decoded_bytes)
