"""Clause SANDBOX-17: Parquet is decoded by programs in the sandbox, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPENING = re.compile(
    r"\b(?:pq|parquet)\.(?:ParquetFile|ParquetDataset|read_\w+)\(|\b(?:ds|dataset)\.dataset\("
    r"|\.(?:read|register)_parquet\(|\bopen_slice\(|pyarrow[. ]dataset\b"
)
HOST_SIDE = ("node/odf_node", "engines/odf_engines/host", "engines/odf_engines/reading", "engines/odf_engines/sandbox")
"""What the node's own process runs, and of ``host`` and ``reading`` what their programs in the sandbox do."""
DECODERS = {
    "engines/odf_engines/host/output_rows.py",  # in the reader, or in the container of a caller (GRPC-11)
    "engines/odf_engines/reading/event_times.py",
    "engines/odf_engines/reading/evolved_rows.py",
    "engines/odf_engines/reading/new_rows.py",
    "engines/odf_engines/reading/program.py",
    "engines/odf_engines/reading/row_windows.py",
    "engines/odf_engines/reading/slices.py",
}
PROGRAMS = {"node/odf_fingerprints/program.py", "node/odf_fingerprints/summaries.py"}
"""Of plug-ins, what runs in the sandbox of readers alone."""
ASKING = {"odf_engines.reading.files"}
"""The module of the reader that opens no file."""
PURE = {"event_times.find_newest", "evolved_rows.in_columns", "row_windows.shorten_cell"}
"""Of the decoders' modules what works on values that are here."""


def iter_host_side() -> Iterator[Path]:
    for folder in HOST_SIDE:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_parquet_is_opened_by_the_programs_of_the_sandbox_alone() -> None:
    found = {str(path.relative_to(ROOT)) for path in iter_host_side() if OPENING.search(path.read_text())}
    assert found == DECODERS


def test_node_asks_the_reader_and_calls_none_of_its_decoders() -> None:
    programs = {each.removeprefix("node/").removesuffix(".py").replace("/", ".") for each in PROGRAMS}
    for path in sorted({*(ROOT / "node").rglob("*.py")} - {ROOT / each for each in PROGRAMS}):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("odf_engines.reading"):
                    asked = {f"{module.removeprefix('odf_engines.reading.')}.{each.name}" for each in names}
                    assert module in ASKING or asked <= PURE, path
                case ast.ImportFrom(module=str(module)):
                    assert module not in programs, path
                case ast.Import(names=names):
                    assert not [each.name for each in names if each.name.startswith("odf_engines.reading")], path


@pytest.mark.parametrize(
    "line",
    [
        "with pq.ParquetFile(path) as file:",
        "rows = parquet.read_table(path)",
        "import pyarrow.dataset",
        "context.register_parquet('t', path)",
        "ds.dataset(folder)",
    ],
)
def test_each_way_of_opening_a_file_is_found(line: str) -> None:
    assert OPENING.search(line)
