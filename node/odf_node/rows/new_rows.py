"""The rows of a dataset behind an offset, as a file that another one is fed from (ING-43)."""

from collections.abc import Iterable
from pathlib import Path

from pyarrow import compute, parquet

from odf_protocol.errors import RejectedError
from odf_protocol.vocabulary import Vocabulary


def write_new_rows(
    paths: Iterable[Path], words: Vocabulary, target: Path, *, after: int, name: str, has_operations: bool
) -> None:
    """Write the rows behind an offset into one file, without the columns that whoever takes them makes itself.

    Args:
        paths: Files of rows that this node wrote, one at least with such a row.
        words: What their system columns are called.
        target: The new file.
        after: The offset.
        name: Of the dataset, for messages.
        has_operations: Their operations are the column ``op``.

    Raises:
        RejectedError: There are corrections, and no column for them.
    """
    writer: parquet.ParquetWriter | None = None
    try:
        for path in paths:
            file = parquet.ParquetFile(path)
            for number in range(file.num_row_groups):
                group = file.read_row_group(number)
                found = group.filter(compute.greater(group.column(words.offset), after))
                if not has_operations and any(found.column(words.op).to_pylist()):
                    expected = "rows that are appended; with ?op=true operations are a column, for ChangelogStream"
                    raise RejectedError(
                        "ING-43 no-lost-corrections", expected=expected, found=f"corrections in '{name}'"
                    )
                table = found.drop_columns([words.offset, words.system_time])
                if not has_operations:
                    table = table.drop_columns([words.op])
                elif words.op != "op":
                    table = table.rename_columns({words.op: "op"})
                writer = writer or parquet.ParquetWriter(target, table.schema)
                writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
