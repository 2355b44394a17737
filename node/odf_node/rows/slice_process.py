"""Slices of strangers, read in a process of their own: what they cost is bounded, and a crash is a refusal.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, Self

from odf_node.rows.slice_worker import PART_BYTES
from odf_protocol import hashing
from odf_protocol.block import Block, encode_block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.divergence import Divergence
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.events import AddData, ExecuteTransform, SetDataSchema
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # guess: a hundred differing cells of some kilobytes

# Ends that a file can bring about; any other is an operator's or the system's doing.
_BY_THE_FILE: Final = frozenset(
    {signal.SIGXCPU, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}
)

_MEMORY: Final = {
    # Other allocators of Arrow's reserve more memory than they use, which the limit would count.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    # Memory of a batch serves the next one, instead of going back to the system; larger pieces go back at once.
    "MALLOC_MMAP_THRESHOLD_": str(8 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024),
}


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What one slice may cost to read."""

    memory_bytes: int = 2 * 1024**3  # guess: batches of 65,536 rows of 30 kB; what engines get
    cpu_s: int = 120  # guess: any slice of some megabytes on a slow machine
    cpu_s_per_megabyte: int = 10  # guess: a hundred times of what ordinary columns take
    written_bytes: int = 4 * 1024**3  # guess: what engines may write


class RowReader(Protocol):
    """Who checks rows of slices."""

    def check(self, path: Path, block: Block, view: DatasetView) -> int:
        """See ``SliceProcess``."""
        ...

    def fingerprint(self, path: Path, *, key: bytes, vocabulary: Vocabulary, target: BinaryIO) -> None:
        """See ``SliceProcess``."""
        ...

    def read_window(
        self, path: Path, *, first: int, count: int, columns: Sequence[str], most_characters: int
    ) -> list[list[tuple[str, int] | None]]:
        """See ``SliceProcess``."""
        ...


class SliceProcess:
    """A reader of slices in a process of its own, started with the first request or before; a context manager."""

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self._limits = limits or ReadingLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start the process, which loads what it needs by itself; for those who still wait for the slices."""
        if self._process is None:
            self._start()

    def check(self, path: Path, block: Block, view: DatasetView) -> int:
        """Check every row of the slice at ``path`` against the block that adds it (ROWS-1 to ROWS-6).

        Args:
            path: The slice; its bytes have the physical hash of the block.
            block: With an AddData or ExecuteTransform that has data.
            view: What is in force at the block; has a schema.

        Returns:
            How many rows take another one back.

        Raises:
            RejectedError, MalformedError, UnsupportedError: The slice is not what the block says, or costs too much.
            UnavailableError: Somebody ended the process.
        """
        return int(self._ask(_request_of("check", path, block, view), path.stat().st_size, block.sequence_number))

    def fingerprint(self, path: Path, *, key: bytes, vocabulary: Vocabulary, target: BinaryIO) -> None:
        """Write the fingerprints and operations of the rows of a slice that was checked (ROWS-12).

        Args:
            path: The slice.
            key: See ``RowFingerprints``.
            vocabulary: Names of the columns that are no part of a row.
            target: Gets them as ``CHANGE`` has them.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
            UnavailableError: Somebody ended the process.
            HomeFullError, HomeReadOnlyError: Of ``target``.
        """
        request = {
            "operation": "fingerprint",
            "path": str(path),
            "key": base64.b64encode(key).decode(),
            "vocabulary": vocabulary.columns,
        }
        self._ask(request, path.stat().st_size, None, target)

    def rewrite(self, path: Path, block: Block, view: DatasetView, target: BinaryIO) -> None:
        """Check every row as ``check`` does, and write the rows that were checked anew, as this node writes slices.

        What ``target`` got counts only once nothing was raised; arguments and errors as those of ``check``.

        Raises:
            HomeFullError, HomeReadOnlyError: Of ``target``.
        """
        request = _request_of("rewrite", path, block, view)
        self._ask(request, path.stat().st_size, block.sequence_number, target)

    def compare(
        self,
        published: Path,
        recomputed: Path,
        vocabulary: Vocabulary,
        *,
        sequence_number: int,
        prev_watermark: Timestamp | None = None,
    ) -> Divergence | None:
        """Find what differs between two slices, value by value; None where nothing does.

        Args:
            published: What the block's author says.
            recomputed: What the engine gave.
            vocabulary: Names of the system columns.
            sequence_number: Of the block.
            prev_watermark: That stood before it.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be compared at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        request = {
            "operation": "compare",
            "published": str(published),
            "recomputed": str(recomputed),
            "vocabulary": vocabulary.columns,
            "prev_watermark_ms": None if prev_watermark is None else prev_watermark.unix_ms,
        }
        found = self._ask(request, published.stat().st_size + recomputed.stat().st_size, sequence_number)
        return None if found is None else Divergence.from_json(found)

    def summarise(self, path: Path, *, most_leaves: int, most_schema_bytes: int) -> "TableSummary":
        """Compute all hashes of a file's v1 tree; it need not be a slice.

        Args:
            path: The file.
            most_leaves: Of all columns together.
            most_schema_bytes: Of their names and types, written as in the tree.

        Raises:
            RejectedError, MalformedError, UnsupportedError: It has no such tree, or none at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        request = {
            "operation": "summarise",
            "path": str(path),
            "most_leaves": most_leaves,
            "most_schema_bytes": most_schema_bytes,
        }
        found, leaves = self._ask_for_bytes(
            request, path.stat().st_size, None, most_bytes=most_leaves * hashing.v1.HASH_BYTES
        )
        column_bytes = hashing.v1.leaf_count(found["row_count"]) * hashing.v1.HASH_BYTES
        columns = (leaves[start : start + column_bytes] for start in range(0, len(leaves), column_bytes))
        return hashing.v1.TableSummary.of_leaves(
            found["row_count"],
            base64.b64decode(found["schema"]),
            [hashing.v1.PackedHashes(column) for column in columns],
        )

    def read_window(
        self, path: Path, *, first: int, count: int, columns: Sequence[str], most_characters: int
    ) -> list[list[tuple[str, int] | None]]:
        """Read some rows and columns as texts, as ``row_windows.read_window`` says.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        named = {"first": first, "count": count, "columns": [*columns], "most_characters": most_characters}
        request = {"operation": "window", "path": str(path), "arguments": named}
        _, body = self._ask_for_bytes(request, path.stat().st_size, None, most_bytes=MAX_ANSWER_BYTES)
        return [[None if cell is None else (cell[0], cell[1]) for cell in row] for row in json.loads(body)]

    def find_rows_like(self, path: Path, *, pattern: Path, row: int, keys: Sequence[str], most: int) -> list[int]:
        """Find rows by the key of another, as ``row_windows.find_rows_like`` says; errors as ``read_window``."""
        named = {"pattern": str(pattern), "row": row, "keys": [*keys], "most": most}
        request = {"operation": "like", "path": str(path), "arguments": named}
        found, _ = self._ask_for_bytes(request, path.stat().st_size, None, most_bytes=0)
        return [int(number) for number in found]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        self.close()

    def close(self) -> None:
        """End the process; the next request starts another."""
        self._end()

    def stop(self) -> None:
        """End the process for good, from another thread than the one that waits for its answer, which then fails."""
        self._is_stopped = True
        if (process := self._process) is not None:
            process.kill()

    def _ask(
        self, request: dict[str, Any], size_bytes: int, sequence_number: int | None, target: BinaryIO | None = None
    ) -> Any:
        return self._ask_for_bytes(request, size_bytes, sequence_number, most_bytes=0, target=target)[0]

    def _ask_for_bytes(
        self,
        request: dict[str, Any],
        size_bytes: int,
        sequence_number: int | None,
        *,
        most_bytes: int,
        target: BinaryIO | None = None,
    ) -> tuple[Any, bytes]:
        cpu_s = self._limits.cpu_s + size_bytes * self._limits.cpu_s_per_megabyte // 1_000_000
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # its end is found below
            process.stdin.write(json.dumps({**request, "cpu_s": cpu_s}).encode() + b"\n")
            process.stdin.flush()
        written_bytes = 0
        while True:
            line = process.stdout.readline(MAX_ANSWER_BYTES)
            if not line.endswith(b"\n"):
                raise self._explain_end(process, sequence_number, cpu_s, is_mute=not line)
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):  # it may be in the hands of the file that it reads
                raise self._explain_end(process, sequence_number, cpu_s, is_mute=False) from None
            if target is None or "part" not in answer:
                break
            written_bytes += answer["part"]
            # It may be in the hands of the file that it reads.
            if not 0 < answer["part"] <= PART_BYTES or written_bytes > self._limits.written_bytes:
                raise self._explain_end(process, sequence_number, cpu_s, is_mute=False)
            try:
                target.write(process.stdout.read(answer["part"]))
            except BaseException:
                self._end()  # the rest of its answer would be taken for the next one
                raise
        if "error" in answer:
            raise self._error_of(answer["error"], sequence_number, cpu_s)
        # It may be in the hands of the file that it reads: it must not make us hold more than was asked for.
        if not 0 <= answer["bytes"] <= most_bytes:
            raise self._explain_end(process, sequence_number, cpu_s, is_mute=False)
        body = process.stdout.read(answer["bytes"])
        if len(body) != answer["bytes"]:
            raise self._explain_end(process, sequence_number, cpu_s, is_mute=True)
        return answer["result"], body

    def _start(self) -> "subprocess.Popen[bytes]":
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "odf_node.rows.slice_worker", str(self._limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Tokens and secrets of this node are none of its business (CONV-6).
            env={name: value for name, value in os.environ.items() if not name.startswith("ODF_NODE_")} | _MEMORY,
            start_new_session=True,  # a terminal's Ctrl-C is for us: it must not look like the file's doing
        )
        if self._is_stopped:  # whoever stopped it may have looked just before
            process.kill()
        return process

    def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def _explain_end(
        self,
        process: "subprocess.Popen[bytes]",
        sequence_number: int | None,
        cpu_s: int,
        *,
        is_mute: bool,
    ) -> OdfError:
        if not is_mute:
            self._end()
            return self._too_dear(sequence_number, cpu_s, "an answer without end")
        process.communicate()
        self._process = None
        code = process.returncode
        assert code is not None
        if code < 0 and -code not in _BY_THE_FILE:
            return UnavailableError(f"the reader of slices was ended by {signal.Signals(-code).name}; try again")
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return self._too_dear(sequence_number, cpu_s, f"a reader that ended with {ended}")

    def _error_of(self, error: dict[str, Any], sequence_number: int | None, cpu_s: int) -> OdfError:
        kind = error.pop("kind")
        if kind == "memory":
            return self._too_dear(sequence_number, cpu_s, "more memory needed")
        if kind == "rejected":
            return RejectedError(error.pop("rule"), **error)
        if kind == "malformed":
            return MalformedError(error.pop("what"), **error)
        return UnsupportedError("slice", **error)

    def _too_dear(self, sequence_number: int | None, cpu_s: int, found: str) -> RejectedError:
        return RejectedError(
            "ROWS-6 slice-is-read-at-bounded-cost",
            sequence_number=sequence_number,
            expected=f"{self._limits.memory_bytes >> 20} MiB of memory and {cpu_s} s of processor time",
            found=found,
        )


def _request_of(operation: str, path: Path, block: Block, view: DatasetView) -> dict[str, Any]:
    assert isinstance(block.event, AddData | ExecuteTransform)
    schema = encode_block(
        SetDataSchema(schema=view.schema), system_time=block.system_time, prev_block_hash=None, sequence_number=0
    )
    return {
        "operation": operation,
        "path": str(path),
        "block": base64.b64encode(block.raw).decode(),
        "schema": base64.b64encode(schema).decode(),
        "vocabulary": view.vocabulary.columns,
    }
