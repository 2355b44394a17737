"""The example notebook is true: its code runs from the top, and prints what stands in it."""

from pathlib import Path

import pytest

from support.notebooks import printed_before, read_notebook, run_cells
from support.warm_engine import lent_engine, lent_to_untrusted

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook/what-was-known.ipynb"


@pytest.mark.spark
def test_code_of_the_notebook_prints_what_stands_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("ODF_NODE_HOME", str(home))
    monkeypatch.setenv("COVID_SOURCE", "")  # the notebook sets it
    with lent_engine(), lent_to_untrusted():
        ran = [(printed_before(cell), printed) for cell, printed in run_cells(NOTEBOOK)]
    assert [printed for _, printed in ran] == [before for before, _ in ran]
    assert sum(bool(printed) for _, printed in ran) >= 5


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.ipynb")), ids=lambda path: path.stem)
def test_notebook_is_one_that_any_kernel_of_python_runs(path: Path) -> None:
    notebook = read_notebook(path)
    assert notebook["nbformat_minor"] >= 5
    assert notebook["metadata"]["kernelspec"]["language"] == "python"
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        assert cell["cell_type"] in {"code", "markdown"}
        assert not any(line.lstrip().startswith(("%", "!")) for line in source.splitlines())
