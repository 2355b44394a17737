"""The description for machines says what the routes and messages are (``spec/schemas/openapi.yaml``)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web
from aiohttp.hdrs import METH_HEAD

from odf_node.http.description import describe_routes, list_described
from odf_node.http.route_tables import Route, add_plug_in_routes
from odf_node.http.server import create_app
from odf_protocol.exchange import limits, messages
from odf_protocol.exchange.packs import PACK_MEDIA_TYPE
from odf_protocol.exchange.routes import PROTOCOL_VERSION, ObjectKind
from support.exchange_nodes import TestNode

ROOT = Path(__file__).parent.parent.parent
SCHEMAS_FOLDER = ROOT / "spec/schemas"
COMPONENTS = yaml.safe_load((SCHEMAS_FOLDER / "openapi.components.yaml").read_text())
GREETING = "summary: A greeting.\nresponses: {404: Problem}"
DESCRIPTION = yaml.safe_load((ROOT / "spec/schemas/openapi.yaml").read_text())
CLAUSES = (ROOT / "spec/extensions/exchange.md").read_text()
SCHEMAS = DESCRIPTION["components"]["schemas"]
MESSAGES = [
    name
    for name, found in vars(messages).items()
    if isinstance(found, type(msgspec.Struct)) and not name.startswith("_")
]


def described_routes() -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, item in DESCRIPTION["paths"].items() for method in item}


def is_page(path: str) -> bool:
    """Tell whether a path is of the pages, which are for people (PAGES-1)."""
    return path == "/" or path.startswith("/-/")


def walk(value: Any) -> Iterator[Any]:
    yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(child)


def test_routes_are_those_of_the_description(tmp_path: Path) -> None:
    app = create_app(TestNode.create(tmp_path / "home").served)
    add_plug_in_routes(app, None)  # type: ignore[arg-type]  # nothing is asked
    routes = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != METH_HEAD and not is_page(route.resource.canonical)
    }
    assert routes == described_routes()


def test_description_is_made_of_the_tables_of_routes() -> None:
    """EX-88: a route is declared in one place; ``python -m odf_node.http.description`` writes the file."""
    assert describe_routes(COMPONENTS, list_described()) == (SCHEMAS_FOLDER / "openapi.yaml").read_text()


def test_route_that_is_for_people_is_not_described() -> None:
    routes = (Route("GET", "/page", _answer), Route("GET", "/{name:.+}", _answer, operation=GREETING))
    described = yaml.safe_load(describe_routes(COMPONENTS, routes))
    problem = {"$ref": "#/components/responses/Problem"}
    assert described["paths"] == {"/{name}": {"get": {"summary": "A greeting.", "responses": {"404": problem}}}}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("- A list.", "expected a map"),
        ("summary: A greeting.\nparameters: [nothing]\nresponses: {}", "'nothing' among parameters"),
        ("summary: A greeting.\nresponses: {404: Nothing}", "'Nothing' among responses"),
    ],
)
def test_operation_that_cannot_be_used_is_named_with_its_route(operation: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^GET /greeting: .*{message}"):
        describe_routes(COMPONENTS, [Route("GET", "/greeting", _answer, operation=operation)])


async def _answer(_request: web.Request) -> web.Response:
    return web.Response()


@pytest.mark.parametrize("name", MESSAGES)
def test_message_has_the_described_fields(name: str) -> None:
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(getattr(messages, name))}
    schema = SCHEMAS[name]
    assert set(schema["properties"]) == set(fields)
    assert set(schema.get("required", [])) == {field for field, required in fields.items() if required}
    strict = getattr(messages, name).__struct_config__.forbid_unknown_fields
    assert (schema.get("additionalProperties") is False) == strict


def test_references_lead_to_something() -> None:
    for value in walk(DESCRIPTION):
        if isinstance(value, dict) and "$ref" in value:
            target = DESCRIPTION
            for part in value["$ref"].removeprefix("#/").split("/"):
                target = target[part]


def test_path_parameters_are_described() -> None:
    for path, item in DESCRIPTION["paths"].items():
        for operation in item.values():
            named = set()
            for parameter in operation.get("parameters", []):
                found = parameter
                if "$ref" in parameter:
                    found = DESCRIPTION["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[1]]
                if found["in"] == "path":
                    named.add(found["name"])
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_only_pushes_ask_for_a_token() -> None:
    for path, item in DESCRIPTION["paths"].items():
        asks = bool(re.search("/push|/ingest|/uploads|/token|/changes/commit", path))
        for method, operation in item.items():
            assert ("security" in operation) == asks, (method, path)
            assert not ("/pushes" in path and "401" not in operation["responses"])


def test_values_in_the_description_are_those_of_the_code() -> None:
    kinds = SCHEMAS["MissingObject"]["properties"]["kind"]["enum"]
    assert kinds == [kind.value for kind in ObjectKind]
    assert SCHEMAS["PushState"]["properties"]["status"]["enum"] == [status.value for status in messages.PushStatus]
    assert SCHEMAS["PushState"]["properties"]["missing"]["maxItems"] == limits.PAGE_MISSING_OBJECTS
    assert SCHEMAS["DatasetPage"]["properties"]["datasets"]["maxItems"] == limits.PAGE_DATASETS
    assert DESCRIPTION["info"]["version"] == str(PROTOCOL_VERSION)
    assert PACK_MEDIA_TYPE in (ROOT / "spec/schemas/openapi.yaml").read_text()


def test_clauses_that_the_description_names_exist() -> None:
    text = (ROOT / "spec/schemas/openapi.yaml").read_text()
    for clause in set(re.findall(r"EX-\d+", text)):
        assert f"| {clause} |" in CLAUSES


def test_numbers_in_the_clauses_are_those_of_the_code() -> None:
    assert f"stalls for {limits.STALL_S:g} s" in CLAUSES
    assert f"at most {limits.MAX_WALK_BLOCKS:,}" in CLAUSES
    assert f"for {limits.PUSH_IDLE_S / 60:g} minutes" in CLAUSES
    assert f"at most {limits.MAX_PULL_BLOCKS:,} blocks" in CLAUSES
    assert limits.MAX_REDIRECTS == 3
    assert "three at most" in CLAUSES
    assert f"at most {limits.MAX_ZSTD_WINDOW_BYTES // limits.MIB} MiB" in CLAUSES
    assert limits.MIN_RATE_BYTES_PER_S == 1000
    assert "less than 1 kB/s" in CLAUSES
