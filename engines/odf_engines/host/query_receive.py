"""Check the answer to a query, on the host.

Source: clauses ENGINE-5 and ENGINE-6 in ``spec/extensions/engine-contract.md``; spec/query.md QUERY-5.
"""

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import Limits, QueryRequest, QueryResponse
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.output_rows import SizeCheck
from odf_engines.host.outputs import Answer, OutputFolder


def receive_query(request: QueryRequest, answer: Answer, outputs: OutputFolder) -> QueryResponse:
    """Take over the file of an answer and check that it is what the answer says.

    Raises:
        EngineFailureError: It is not.
        LimitExceededError: It is too large.
    """
    # Whoever asked reads the answer whole.
    response = receive_result(answer, outputs, request.limits, most_decoded_bytes=request.limits.output_bytes)
    if request.max_rows is not None and response.rows > request.max_rows:
        raise EngineFailureError(f"a query answered {response.rows} rows where {request.max_rows} were asked for")
    return response


def receive_result(answer: Answer, outputs: OutputFolder, limits: Limits, *, most_decoded_bytes: int) -> QueryResponse:
    """Take over what a query gave; errors as ``receive_query``."""
    schema, rows = answer.get_schema(), answer.get_count("rows")
    path = outputs.find(answer, "result")
    if path is None:
        raise EngineFailureError("a query answered no file")
    if rows > limits.output_rows:
        raise LimitExceededError("output_rows", allowed=limits.output_rows, found=rows)
    outputs.check(path, SizeCheck(most_decoded_bytes=most_decoded_bytes))
    try:
        with pq.ParquetFile(path) as file:
            found, count = file.schema_arrow.remove_metadata(), file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise EngineFailureError(f"result is not readable as Parquet ({error})") from error
    if count != rows or not found.equals(schema):
        raise EngineFailureError("result has other rows or columns than the answer says")
    return QueryResponse(result_path=path, schema=schema, rows=rows)
