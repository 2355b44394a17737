"""The description of all routes for machines (OpenAPI), made of the tables of routes.

``python -m odf_node.http.description > spec/schemas/openapi.yaml`` writes it. Schemas, and what several routes have in
common, are in ``spec/schemas/openapi.components.yaml``.

Source: clause EX-88 in ``spec/extensions/exchange.md``; OpenAPI 3.1.0.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from odf_node.http.core_routes import CORE_ROUTES
from odf_node.http.route_tables import GROUP, Route, RouteTable
from odf_node.plug_ins import load_plug_ins

_WIDTH: Final = 120  # as lines of the program
_PATTERN: Final = re.compile(r"\{(\w+):[^}]*\}")
"""A parameter of a path with the pattern that it fits, which OpenAPI does not have there."""


def describe_routes(components: dict[str, Any], routes: Iterable[Route]) -> str:
    """Write the description.

    Args:
        components: The document without its paths.
        routes: Those without an operation are left out.

    Returns:
        The document as YAML.

    Raises:
        ValueError: An operation is no map, or names a parameter or response that there is none of.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.operation:
            path = _PATTERN.sub(r"{\1}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = _read_operation(route, components["components"])
    head = {name: value for name, value in components.items() if name != "components"}
    described = {**head, "paths": paths, "components": components["components"]}
    return yaml.dump(described, Dumper=_Plain, sort_keys=False, width=_WIDTH, allow_unicode=True)


def list_described() -> Iterator[Route]:
    """Yield the routes of the core and of plug-ins, as they are registered."""
    yield from CORE_ROUTES
    for table in load_plug_ins(GROUP, RouteTable).values():
        yield from table.routes


class _Plain(yaml.SafeDumper):
    """Writes what is the same twice in full."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library's
        return True


def _read_operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    operation = yaml.safe_load(route.operation)
    if not isinstance(operation, dict):
        raise ValueError(f"{route.method} {route.path}: expected a map, found {operation!r:.60}")  # noqa: TRY004 - in a text

    def resolve(kind: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value not in components[kind]:
            raise ValueError(f"{route.method} {route.path}: there is none of the name '{value}' among {kind}")
        return {"$ref": f"#/components/{kind}/{value}"}

    if "parameters" in operation:
        operation["parameters"] = [resolve("parameters", each) for each in operation["parameters"]]
    responses = operation["responses"].items()
    operation["responses"] = {str(status): resolve("responses", each) for status, each in responses}
    return operation


if __name__ == "__main__":
    folder = Path(__file__).parents[3] / "spec" / "schemas"
    shared = yaml.safe_load((folder / "openapi.components.yaml").read_text(encoding="utf-8"))
    sys.stdout.write(describe_routes(shared, list_described()))
