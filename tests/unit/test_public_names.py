"""The library documents itself: what every module and public name is, what it raises, and where it comes from."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import odf_protocol

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(odf_protocol.__path__, "odf_protocol.")
    if not found.name.endswith("__main__")
)
DECLARED_ERRORS = {"MalformedError", "UnsupportedError", "RejectedError", "CorruptError", "NotFoundError"}


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Names of ``__all__``, or where there is none what is defined in the module and has no underscore."""
    stated = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        is_ours = getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
        if name in stated if stated is not None else is_ours:
            yield name, value


def methods_of(value: Any) -> Iterator[tuple[str, Any]]:
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def iter_public_functions(scope: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from iter_public_functions(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def test_every_module_and_public_name_is_documented() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    assert [each.__name__ for each in modules if not set(getattr(each, "__all__", ())) <= set(vars(each))] == []
    assert {each.__name__: names for each in modules if (names := undocumented_names(each))} == {}


def undocumented_names(module: ModuleType) -> list[str]:
    undocumented = [] if module.__doc__ else [module.__name__]
    for public, value in public_names(module):
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        if not value.__module__.startswith("odf_protocol"):
            continue  # handed on: its own library documents it
        # Dataclasses without a docstring get their signature as one.
        if not value.__doc__ or value.__doc__.startswith(f"{public}("):
            undocumented.append(public)
        undocumented += [f"{public}.{method}" for method, function in methods_of(value) if not function.__doc__]
    return undocumented


def test_every_public_function_names_the_errors_it_raises() -> None:
    paths = [importlib.import_module(name).__file__ or "" for name in MODULES]
    assert {path: names for path in paths if (names := silent_functions(Path(path)))} == {}


def silent_functions(path: Path) -> list[str]:
    silent = []
    for node in iter_public_functions(ast.parse(path.read_text())):
        raised = {
            call.func.id
            for call in (raise_.exc for raise_ in ast.walk(node) if isinstance(raise_, ast.Raise))
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        }
        if raised & DECLARED_ERRORS and "Raises:" not in (ast.get_docstring(node) or ""):
            silent.append(node.name)
    return silent


def test_library_needs_neither_engines_nor_servers() -> None:
    program = (
        "import sys, pkgutil, importlib, odf_protocol\n"
        "for found in pkgutil.walk_packages(odf_protocol.__path__, 'odf_protocol.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'pyspark', 'py4j', 'aiohttp', 'sqlite3', 'asyncio', 'odf_engines', 'odf_node'}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_importing_the_library_loads_nothing_heavy() -> None:
    program = (
        "import sys, odf_protocol, odf_protocol.block, odf_protocol.chain.verify, odf_protocol.names\n"
        "print(sorted(sys.modules.keys() & {'pyarrow', 'yaml', 'cryptography'}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_types_are_published() -> None:
    assert (Path(odf_protocol.__file__).parent / "py.typed").is_file()


def test_every_document_and_module_is_in_the_profile() -> None:
    """A reader of spec/odf-profile.md finds the way to everything else."""
    spec = Path(__file__).parents[2] / "spec"
    profile = (spec / "odf-profile.md").read_text()
    documents = [*spec.glob("*.md"), *spec.glob("extensions/*.md"), *spec.glob("plug-ins/*.md")]
    named = {str(path.relative_to(spec)) for path in documents if path.name != "odf-profile.md"}
    assert {name for name in named if f"{name}`" not in profile} == set()
    package = Path(odf_protocol.__file__).parent
    modules = {path.name for path in package.glob("*.py") if path.name != "__init__.py"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {name for name in modules if f"`{name}`" not in profile} == set()
    assert {name for name in packages if f"`{name}/" not in profile} == set()
