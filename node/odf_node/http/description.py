"""What the routes and messages are, for programs: the description of the specification, as it is (EX-88)."""

from pathlib import Path
from typing import Final

from aiohttp import web

MEDIA_TYPE: Final = "application/yaml"
"""Source: RFC 9512."""

_FILE: Final = Path(__file__).with_name("openapi.yaml")
"""Here a link to ``spec/schemas/openapi.yaml``, in a wheel the file itself."""


def add_routes(app: web.Application) -> None:
    """Register the route."""
    app.router.add_get("/openapi.yaml", _get_description)


async def _get_description(_request: web.Request) -> web.FileResponse:
    return web.FileResponse(_FILE, headers={"Content-Type": MEDIA_TYPE})
