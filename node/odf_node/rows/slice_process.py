"""Slices of others, read in a sandbox: what they cost is bounded, and a crash is a rejection.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import atexit
import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, Self

from odf_engines.host.reader_limits import MAX_FILES, ReadingLimits
from odf_engines.host.reader_process import ReaderProcess
from odf_engines.host.tables import table_of
from odf_node.ports.rows import EventTimes
from odf_protocol.block import Block, encode_block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.divergence import Divergence
from odf_protocol.events import AddData, DataSchema, ExecuteTransform, SetDataSchema
from odf_protocol.hashing.v1 import HASH_BYTES, PackedHashes, TableSummary, leaf_count
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["MAX_FILES", "ReadingLimits", "RowReader", "SliceProcess"]

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # guess: a hundred differing cells of some kilobytes


class RowReader(Protocol):
    """Who checks rows of slices."""

    def check(self, path: Path, block: Block, view: DatasetView) -> int:
        """See ``SliceProcess``."""
        ...

    def fingerprint(self, path: Path, *, key: bytes, vocabulary: Vocabulary, target: BinaryIO) -> None:
        """See ``SliceProcess``."""
        ...

    def read_window(
        self, path: Path, *, first: int, count: int, columns: Sequence[str], max_characters: int
    ) -> list[list[tuple[str, int] | None]]:
        """See ``SliceProcess``."""
        ...


class SliceProcess:
    """A reader of slices in a sandbox, started with the first request or before; a context manager."""

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self._reader = ReaderProcess(limits)

    def start(self) -> None:
        """See ``ReaderProcess``."""
        self._reader.start()

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
        claims, number = _claims_of(block, view), block.sequence_number
        return self._reader.ask("check", claims, [path], _count_of, sequence_number=number)

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
        asked = {"key": base64.b64encode(key).decode(), "vocabulary": vocabulary.columns}
        self._reader.ask("fingerprint", asked, [path], _nothing, target=target)

    def rewrite(self, path: Path, block: Block, view: DatasetView, target: BinaryIO) -> None:
        """Check every row as ``check`` does, and write the rows that were checked anew, as this node writes slices.

        What ``target`` got counts only once nothing was raised; arguments and errors as those of ``check``.

        Raises:
            HomeFullError, HomeReadOnlyError: Of ``target``.
        """
        claims, number = _claims_of(block, view), block.sequence_number
        self._reader.ask("rewrite", claims, [path], _nothing, target=target, sequence_number=number)

    def compare(
        self,
        published: Path,
        reexecuted: Path,
        vocabulary: Vocabulary,
        *,
        sequence_number: int,
        prev_watermark: Timestamp | None = None,
    ) -> Divergence | None:
        """Find what differs between two slices, value by value; None where nothing does.

        Args:
            published: What the block's author says.
            reexecuted: What the engine gave.
            vocabulary: Names of the system columns.
            sequence_number: Of the block.
            prev_watermark: That stood before it.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be compared at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        asked = {
            "vocabulary": vocabulary.columns,
            "prev_watermark_ms": None if prev_watermark is None else prev_watermark.unix_ms,
        }
        return self._reader.ask(
            "compare",
            asked,
            [published, reexecuted],
            lambda found, _: None if found is None else Divergence.from_json(found),
            sequence_number=sequence_number,
        )

    def compare_bags(
        self, published: Path, reexecuted: Path, vocabulary: Vocabulary, *, sequence_number: int
    ) -> tuple[int, int, int]:
        """Count rows of two slices whose order says nothing (PLAN-19): of the first, of the second, and of both.

        Rows are operation, event time and data columns, equal to the bit; equal rows count as often as they are there.
        Arguments and errors as those of ``compare``.
        """
        asked = {"vocabulary": vocabulary.columns}
        paths = [published, reexecuted]
        return self._reader.ask("compare bags", asked, paths, _bags_of, sequence_number=sequence_number)

    def summarise(self, path: Path, *, max_leaves: int, max_schema_bytes: int) -> TableSummary:
        """Compute all hashes of a file's v1 tree; it need not be a slice.

        Args:
            path: The file.
            max_leaves: Of all columns together.
            max_schema_bytes: Of their names and types, written as in the tree.

        Raises:
            RejectedError, MalformedError, UnsupportedError: It has no such tree, or none at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        asked = {"max_leaves": max_leaves, "max_schema_bytes": max_schema_bytes}
        max_bytes = max_leaves * HASH_BYTES
        return self._reader.ask("summarise", asked, [path], _summary_of, max_bytes=max_bytes)

    def read_window(
        self, path: Path, *, first: int, count: int, columns: Sequence[str], max_characters: int
    ) -> list[list[tuple[str, int] | None]]:
        """Read some rows and columns as texts, as ``row_windows.read_window`` says.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        named = {"first": first, "count": count, "columns": [*columns], "max_characters": max_characters}
        return self._reader.ask("window", {"arguments": named}, [path], _cells_of, max_bytes=MAX_ANSWER_BYTES)

    def find_rows_like(self, path: Path, *, pattern: Path, row: int, keys: Sequence[str], most: int) -> list[int]:
        """Find rows by the key of another, as ``row_windows.find_rows_like`` says; errors as ``read_window``."""
        named = {"row": row, "keys": [*keys], "most": most}
        return self._reader.ask("like", {"arguments": named}, [path, pattern], _numbers_of)

    def read_event_times(self, path: Path, column: str) -> EventTimes | None:
        """Give the oldest and the newest time of a column, as ``event_times`` says; errors as ``read_window``."""
        return self._reader.ask("times", {"column": column}, [path], _times_of)

    def read_times_beside(self, path: Path, column: str, beside: Sequence[str]) -> "pa.Table | None":
        """Give event times and columns beside them, as ``event_times`` says; errors as ``read_window``."""
        asked, max_bytes = {"column": column, "beside": [*beside]}, self._reader.limits.memory_bytes
        return self._reader.ask(
            "times beside",
            asked,
            [path],
            lambda found, body: found and table_of(body),
            max_bytes=max_bytes,
        )

    def read_last_rows(self, path: Path, count: int) -> "pa.Table":
        """Read the last rows of a slice, all if there are fewer; errors as ``read_window``."""
        max_bytes = self._reader.limits.memory_bytes
        return self._reader.ask(
            "last rows", {"count": count}, [path], lambda _, body: table_of(body), max_bytes=max_bytes
        )

    def write_new_rows(
        self,
        paths: Sequence[Path],
        view: DatasetView,
        target: BinaryIO,
        *,
        after: int,
        name: str,
        has_operations: bool,
    ) -> None:
        """Write the rows behind an offset, as ``new_rows`` says; at most ``MAX_FILES`` files.

        Raises:
            RejectedError, MalformedError, UnsupportedError: There are corrections that nobody asked for; or the rows
                cannot be read at bounded cost.
            UnavailableError: Somebody ended the process.
        """
        named = {"after": after, "name": name, "has_operations": has_operations}
        schema = _schema_text(view.schema, Timestamp(0))
        asked = {"schema": schema, "vocabulary": view.vocabulary.columns, "arguments": named}
        self._reader.ask("new rows", asked, paths, _nothing, target=target)

    def write_in_columns(self, path: Path, schema: DataSchema, target: BinaryIO) -> None:
        """Write rows in the columns of a later schema of their dataset, as ``evolved_rows`` says.

        Raises:
            RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
            UnavailableError: Somebody ended the process.
            HomeFullError, HomeReadOnlyError: Of ``target``.
        """
        self._reader.ask("evolve", {"schema": _schema_text(schema, Timestamp(0))}, [path], _nothing, target=target)

    def hash_rows(self, path: Path) -> Multihash:
        """Hash rows with ``arrow0-sha3-256``; errors as ``read_window``."""
        return self._reader.ask("hash", {}, [path], lambda found, _: Multihash.parse(found))

    def describe(self, path: Path) -> dict[str, Any]:
        """Give ``rows``, ``columns``, ``logical_hash`` and ``values_hash`` of a file; errors as ``read_window``."""
        return self._reader.ask("describe", {}, [path], _description_of)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        self.close()

    def close(self) -> None:
        """End the process; the next request starts another."""
        self._reader.close()

    def stop(self) -> None:
        """See ``ReaderProcess``."""
        self._reader.stop()


def _claims_of(block: Block, view: DatasetView) -> dict[str, Any]:
    assert isinstance(block.event, AddData | ExecuteTransform)
    return {
        "block": base64.b64encode(block.raw).decode(),
        "schema": _schema_text(view.schema, block.system_time),
        "vocabulary": view.vocabulary.columns,
    }


def _schema_text(schema: DataSchema | None, time: Timestamp) -> str:
    event = SetDataSchema(schema=schema)
    return base64.b64encode(encode_block(event, system_time=time, prev_block_hash=None, sequence_number=0)).decode()


# What makes sense of answers: the program may be in the hands of the file that it reads.


def _nothing(found: Any, _body: bytes) -> None:
    if found is not None:
        raise ValueError("expected nothing")


def _count_of(found: Any, _body: bytes) -> int:
    if type(found) is not int or found < 0:
        raise ValueError("expected a count")
    return found


def _bags_of(found: Any, _body: bytes) -> tuple[int, int, int]:
    published, reexecuted, shared = (_count_of(found[name], b"") for name in ("published", "recomputed", "shared"))
    return published, reexecuted, shared


def _summary_of(found: Any, leaves: bytes) -> TableSummary:
    row_count = _count_of(found["row_count"], b"")
    column_bytes = leaf_count(row_count) * HASH_BYTES
    columns = (leaves[start : start + column_bytes] for start in range(0, len(leaves), column_bytes))
    return TableSummary.of_leaves(
        row_count,
        base64.b64decode(found["schema"]),
        [PackedHashes(column) for column in columns],
    )


def _cells_of(_found: Any, body: bytes) -> list[list[tuple[str, int] | None]]:
    return [[None if cell is None else _cell_of(*cell) for cell in row] for row in json.loads(body)]


def _cell_of(text: Any, characters: Any) -> tuple[str, int]:
    if not isinstance(text, str) or type(characters) is not int:
        raise TypeError("expected a text and how many characters it has")
    return text, characters


def _numbers_of(found: Any, _body: bytes) -> list[int]:
    return [int(number) for number in found]


def _times_of(found: Any, _body: bytes) -> EventTimes | None:
    return None if found is None else EventTimes(*map(int, found))


def _description_of(found: Any, _body: bytes) -> dict[str, Any]:
    columns = [{"name": str(each["name"]), "type": str(each["type"])} for each in found["columns"]]
    hashes = {name: str(found[name]) for name in ("logical_hash", "values_hash")}
    return {"rows": int(found["rows"]), "columns": columns, **hashes}


_for_own_files: Final = SliceProcess()
_lending: Final = Lock()
atexit.register(_for_own_files.close)


@contextmanager
def reader_of_own_files() -> Iterator[SliceProcess]:
    """Lend a reader for files that engines here made, of which small steps need one each: it stays for the next.

    Where it is lent, another one is started. Files of others never come to it.
    """
    if not _lending.acquire(blocking=False):
        with SliceProcess() as another:
            yield another
        return
    try:
        yield _for_own_files
    except BaseException:
        _for_own_files.close()  # what is left of an answer would be taken for the next one
        raise
    finally:
        _lending.release()
