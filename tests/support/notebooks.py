"""Notebooks without Jupyter: their code is run cell by cell in one process, as a kernel would, and what it prints kept.

``python -m support.notebooks FILE`` (from ``tests``) runs one and writes what its cells print into it.
"""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any


def read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook of format 4, whose code prints: results and magic are things of a kernel."""
    notebook: dict[str, Any] = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    return notebook


def run_cells(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the code of a notebook in its folder; yields each cell of code and what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read_notebook(path)["cells"]):
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec")
            with chdir(path.parent), redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            yield cell, printed.getvalue()


def printed_before(cell: dict[str, Any]) -> str:
    """Give what a cell printed when the notebook was written."""
    return "".join(text for output in cell["outputs"] for text in output["text"])


def main(path: Path) -> None:
    """Run a notebook and keep what it prints in it."""
    notebook, ran = read_notebook(path), list(run_cells(path))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, (_, printed)) in enumerate(zip(cells, ran, strict=True), 1):
        lines = printed.splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        cell["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + os.linesep)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
