"""Which modules of ours can run inside the sandbox: everything that the programs there import, and nothing else.

Found by reading the code, from the program on: each ``import``, also inside functions, and each text that is the name
of a module of ours, which is how the worker names its operations, and each module that is named through its package
(``odf_protocol.late``). What stands under ``TYPE_CHECKING`` never runs. So a
change of a module that no worker sees is not a new engine, and no list has to be kept.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from odf_engines.host.file_facts import FileFacts


def own_modules(programs: Iterable[str], packages: Mapping[str, Path], cache: Path | None) -> dict[str, Path]:
    """Return place and path of every file of ours that some programs can import, themselves among them.

    Args:
        programs: Names of modules, such as ``odf_engines.host.output_program``.
        packages: Our packages: name and folder.
        cache: Folder for what is known of single files; None for none.

    Returns:
        Paths by place, such as ``odf_protocol/did.py``.
    """
    imports = FileFacts(cache, "own-modules-named", _imports_of)
    found: dict[str, Path] = {}
    seen: set[tuple[str, ...]] = set()  # most names are mentioned by many modules
    waiting = list(programs)
    while waiting:
        parts = waiting.pop().split(".")
        # Importing a module runs the packages around it first.
        for depth in range(1, len(parts) + 1):
            if (name := tuple(parts[:depth])) in seen:
                continue
            seen.add(name)
            module = _find_module(parts[:depth], packages)
            if module is not None and module[0] not in found:
                found[module[0]] = module[1]
                waiting += imports.get(module[1])
    imports.save()
    return found


def _imports_of(path: Path) -> tuple[str, ...]:
    """Return the names that a file of ours imports or mentions as a module, absolute, sorted."""
    reader = _Reader()
    reader.visit(ast.parse(path.read_bytes(), path.name))
    return tuple(sorted(name for name in reader.names if name.startswith("odf_")))


def _find_module(parts: list[str], packages: Mapping[str, Path]) -> tuple[str, Path] | None:
    folder = packages.get(parts[0])
    if folder is None:
        return None
    for name in ("/".join([*parts[1:], "__init__.py"]), f"{'/'.join(parts[1:])}.py"):
        if (path := folder / name).is_file():
            return f"{parts[0]}/{name}", path
    return None


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.bound: dict[str, str] = {}  # what imports called, which may be packages

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for each in node.orelse:
                self.visit(each)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            raise ValueError("a relative import cannot be followed")
        # What is imported from a package may be a module of it.
        self.names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        self.bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self.bound:
            self.names.add(f"{self.bound[node.value.id]}.{node.attr}")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and all(part.isidentifier() for part in node.value.split(".")):
            self.names.add(node.value)
