"""Writes ``spec/vectors`` from the cases of the unit tests: ``PYTHONPATH=tests python tests/support/write_vectors.py``.

What the files state about accepted blocks is not made here but kept: it was gathered from another implementation, and
must not follow ours.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).parents[1]
VECTORS = TESTS.parent / "spec" / "vectors"


def load_test(name: str) -> ModuleType:
    """Import a test module by its path; test folders are no packages."""
    spec = importlib.util.spec_from_file_location(name, TESTS / "unit" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def words_of(param: Any) -> str:
    """What a parameter is called, without its clause."""
    return str(param.id).partition(" ")[2].replace("-", " ")


def rejected_blocks(test: ModuleType) -> list[dict[str, str]]:
    """Blocks that a decoder must reject."""
    return [
        {"rejected_by": clause, "refusal": rejection, "comment": words_of(param), "bytes_hex": raw.hex()}
        for rejection, params in (("malformed", test.MALFORMED), ("unsupported", test.UNSUPPORTED))
        for param in params
        for clause, raw in [param.values]
        if len(raw) <= 20_000
    ]


def chains(test: ModuleType) -> dict[str, Any]:
    """Chains whose last block obeys or breaks a rule."""
    blocks: dict[str, str] = {}
    cases = []
    for verdict, params in (("obeys", test.OBEYED), ("rejected_by", test.BROKEN), ("reported_by", test.REPORTED)):
        for param in params:
            (case,) = param.values
            chain = [*case.chain.blocks, case.block]
            if case.definitions or sum(len(block.raw) for block in chain) > 20_000:
                continue
            blocks |= {str(block.hash): block.raw.hex() for block in chain}
            cases.append(
                {verdict: case.clause, "comment": words_of(param), "chain": [str(block.hash) for block in chain]}
            )
    return {"blocks": blocks, "cases": cases}


def documents() -> dict[str, dict[str, Any]]:
    """The files that are made from tests, by name."""
    blocks = json.loads((VECTORS / "blocks.json").read_text())
    blocks["rejected"] = rejected_blocks(load_test("test_wire_decoder"))
    about = "Chains whose last block obeys a rule, breaks one, or breaks one that binds our own blocks only."
    return {
        "blocks.json": blocks,
        "chains.json": {"kind": "chains", "about": about, **chains(load_test("test_chain_rules"))},
    }


def text_of(document: dict[str, Any]) -> str:
    """JSON with one case a line, so that a change of one is a change of one line."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            body = "[\n" + ",\n".join("  " + json.dumps(item) for item in value) + "\n ]"
        elif isinstance(value, dict):
            items = (f"  {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items())
            body = "{\n" + ",\n".join(items) + "\n }"
        else:
            body = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    for name, document in documents().items():
        (VECTORS / name).write_text(text_of(document))
