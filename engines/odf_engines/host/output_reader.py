"""What an engine left, read by the one sandboxed reader of Parquet: what a hostile file costs, or breaks, stays there.

The reader shares nothing with the engine but the files that were taken over, each of which it is handed open.

Source: clause ENGINE-19 in ``spec/extensions/engine-contract.md``; SANDBOX-11 and 17.
"""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from odf_engines.contract import Limits
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.messages import error_from_fields
from odf_engines.host.output_checks import OPERATIONS, RowsCheck, RowsFound, SizeCheck
from odf_engines.host.reader_limits import ReadingLimits
from odf_engines.host.reader_process import ReaderError, ReaderProcess
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    import pyarrow as pa

_WHERE: Final = "reading the output"
_Found = TypeVar("_Found")


class OutputReader:
    """One reader for all outputs of a session, started with the first file or by ``start``.

    It is replaced after a file that was too much for it.

    Args:
        limits: Of each file: ``memory_bytes`` and ``cpu_s``; ``decoded_bytes`` of rows that are copied.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reader = ReaderProcess(
            ReadingLimits(memory_bytes=limits.memory_bytes, written_bytes=limits.decoded_bytes)
        )

    def start(self) -> None:
        """Start the process and do not wait for it."""
        self._reader.start()

    def check(self, path: Path, check: RowsCheck | SizeCheck, *, wall_s: float) -> RowsFound:
        """Run a check; see ``OutputFolder.check``."""
        found = self._ask("check output", {"check": _fields_of(check)}, path, _found_in, wall_s)
        if isinstance(found, EngineError):
            raise found
        return found

    def copy(self, path: Path, target: BinaryIO, most: int | None, *, wall_s: float) -> None:
        """Copy rows; see ``OutputFolder.copy``."""
        self._ask("copy", {"columns": None, "most": most}, path, _nothing_in, wall_s, target)

    def stop(self) -> None:
        """End the process for good and do not wait; from any thread."""
        self._reader.stop()

    def close(self) -> None:
        """End the process; safe to repeat."""
        self._reader.close()

    def _ask(
        self,
        operation: str,
        arguments: dict[str, Any],
        path: Path,
        read: Callable[[Any, bytes], _Found],
        wall_s: float,
        target: BinaryIO | None = None,
    ) -> _Found:
        try:
            return self._reader.exchange(
                operation, arguments, [path], read, cpu_s=self._limits.cpu_s, wall_s=wall_s, target=target
            )
        except ReaderError as error:
            if error.kind == "memory":
                raise LimitExceededError("memory_bytes", allowed=self._limits.memory_bytes) from None
            raise EngineFailureError(f"output is not readable as Parquet ({error.found})") from None
        except EngineFailureError as error:
            raise EngineFailureError(f"output could not be read: {error.message}", log=error.log) from error
        except LimitExceededError as error:
            raise LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=_WHERE) from error


def _found_in(answer: Any, _body: bytes) -> RowsFound | EngineError:
    match answer:
        case {"problem": fields}:
            return error_from_fields(fields)
        case {"hash": str() | None as text, "operations": [*counts]} if len(counts) == OPERATIONS:
            if all(type(count) is int and count >= 0 for count in counts):
                return RowsFound(None if text is None else Multihash.parse(text), tuple(counts))
    raise ValueError("expected a hash and counts")


def _nothing_in(answer: Any, _body: bytes) -> None:
    if answer is not None:
        raise ValueError("expected nothing")


def _fields_of(check: RowsCheck | SizeCheck) -> dict[str, Any]:
    if isinstance(check, SizeCheck):
        schema = None if check.schema is None else _text_of(check.schema)
        bounds = {"max_decoded_bytes": check.max_decoded_bytes, "rows": check.rows}
        return {"kind": "size", "schema": schema, **bounds}
    return {
        "kind": "rows",
        "schema": _text_of(check.schema),
        "vocabulary": check.vocabulary.columns,
        "interval": [check.interval.start, check.interval.end],
        "system_time_ms": check.system_time_ms,
        "max_rows": check.max_rows,
        "max_decoded_bytes": check.max_decoded_bytes,
    }


def _text_of(schema: "pa.Schema") -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")
