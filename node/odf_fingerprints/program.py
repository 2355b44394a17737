"""The program that describes slices, in the sandbox of readers; files come open.

Source: clause FP-4 in ``spec/plug-ins/fingerprints.md``; ROWS-6.
"""

from typing import Any

import msgspec
import pyarrow as pa

from odf_engines.confined.service import Request, Result
from odf_engines.reading.program import serve_files
from odf_fingerprints.documents import OPERATION
from odf_fingerprints.summaries import summarise_slice
from odf_protocol.vocabulary import Vocabulary


def main(_arguments: dict[str, Any]) -> None:
    """Answer until there are no more requests."""
    serve_files({OPERATION: _describe})


def _describe(request: Request, file: pa.Buffer) -> Result:
    asked = request.arguments
    found = summarise_slice(
        file, Vocabulary(*asked["vocabulary"]), system_time_ms=asked["system_time_ms"], shown=asked["shown"]
    )
    return None, msgspec.json.encode(found, order="sorted")
