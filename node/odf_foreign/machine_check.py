"""What ``odf-node doctor`` reports of added engines and images: whether their files are those that were added.

``CHECK`` is found by its entry point in the group ``odf_node.machine``.

Source: clause ADDED-5 in ``spec/plug-ins/foreign.md``; ING-41.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from odf_foreign.engine_folder import EngineFolder
from odf_foreign.image_folder import ImageFolder
from odf_foreign.images import DamagedImage
from odf_node.home_folder import HomeFolder
from odf_node.machine import MachineCheck, MachineFinding
from odf_node.ports.engines import DamagedEngine
from odf_protocol.errors import OdfError


def iter_findings(folder: Path) -> Iterator[MachineFinding]:
    """Yield a finding for each added engine and image of a home."""
    yield from _iter_engines(folder)
    yield from _iter_images(folder)


def _iter_engines(folder: Path) -> Iterator[MachineFinding]:
    for each in EngineFolder(HomeFolder(folder)).list():
        if isinstance(each, DamagedEngine):
            fix = f"odf-node engine remove {each.build}, and add it again"
            yield MachineFinding(f"engine {each.name}", False, each.found, fix)
            continue
        for need in each.engine.examine():
            yield MachineFinding(need.what, need.is_there, need.found, need.fix)


def _iter_images(folder: Path) -> Iterator[MachineFinding]:
    images = ImageFolder(HomeFolder(folder))
    for image in images.list():
        what, fix = f"image {image.name}", f"odf-node image remove {image.name}, and add it again"
        try:
            if isinstance(image, DamagedImage):
                yield MachineFinding(what, False, image.found, fix)
                continue
            images.open_root(image)
        except OdfError as error:
            yield MachineFinding(what, False, str(error), fix)
            continue
        reach = "with this machine's network" if image.has_network else "without a network"
        yield MachineFinding(what, True, f"{reach}, added {image.added_at}")


CHECK: Final = MachineCheck(iter_findings)
