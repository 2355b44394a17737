"""``odf-node image``: container images whose programs fetch rows for root datasets."""

import argparse
from pathlib import Path
from typing import Final

from odf_foreign.image_folder import ImageFolder
from odf_foreign.images import AddedImage, DamagedImage
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.errors import UsageError

TOPIC: Final = "care for this node"
HELP: Final = "add container images whose programs fetch rows, and list them"
EXAMPLES: Final = """\
image list
image add fetcher fetcher.tar --network
image remove fetcher
"""

_ACTIONS = {
    "list": "list the images of this node, each with its digests, and whether it may use the network",
    "add": "add an image from a file, for manifests that fetch with 'kind: Container'",
    "remove": "forget an image; datasets that fetch with it fail until it is added again",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    for name, action in add_actions(parser, _ACTIONS).items():
        if name != "list":
            action.add_argument("image", metavar="NAME", help="as manifests name it, without a digest")
        if name == "add":
            action.add_argument(
                "file", metavar="FILE",
                help="what 'podman save --format oci-archive' or 'docker save' writes, or the folder of an OCI layout",
            )  # fmt: skip
            action.add_argument(
                "--network", action="store_true",
                help="let its programs use this machine's network, its own ports included (default: none)",
            )  # fmt: skip
        add_output_format(action, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    return {"list": _list, "add": _add, "remove": _remove}[arguments.action](context, arguments)


def _list(context: CommandContext, arguments: argparse.Namespace) -> int:
    rows = [_row_of(each) for each in ImageFolder(context.node.home.folder).list()]
    headings = {"name": "IMAGE", "network": "NETWORK", "digests": "DIGESTS", "added_at": "ADDED", "damage": "DAMAGE"}
    context.console.result(rows, headings, as_json=arguments.output_format == "json", empty="no image was added")
    return 0


def _add(context: CommandContext, arguments: argparse.Namespace) -> int:
    node, file = context.node, Path(arguments.file).expanduser()
    if not file.exists():
        raise UsageError(f"there is no {file}; name a saved image, or the folder of an OCI layout")
    with context.console.progress(f"adding {arguments.image}"):
        image, notes = ImageFolder(node.home.folder).add(
            arguments.image, file, has_network=arguments.network, now=node.now()
        )
    node.record("image add", image.name, f"{image.contents}{', with the network' if image.has_network else ''}")
    for note in notes:
        context.console.note(f"{image.name}: {note}")
    if arguments.output_format == "json":
        context.console.json(_row_of(image))
    else:
        network = "this machine's network" if image.has_network else "no network"
        digests = "".join(f"\n  {each}" for each in image.digests)
        context.console.text(f"{image.name} can be run, with {network}{digests}")
    return 0


def _remove(context: CommandContext, arguments: argparse.Namespace) -> int:
    ImageFolder(context.node.home.folder).remove(arguments.image)
    context.node.record("image remove", arguments.image)
    if arguments.output_format == "json":
        context.console.json({"name": arguments.image})
    else:
        context.console.text(f"{arguments.image} is forgotten")
    return 0


def _row_of(image: AddedImage | DamagedImage) -> dict[str, object]:
    if isinstance(image, DamagedImage):
        return {"name": image.name, "network": "", "digests": [], "added_at": "", "damage": image.describe()}
    network = "this machine's" if image.has_network else "none"
    return {
        "name": image.name, "network": network, "digests": image.digests, "added_at": image.added_at, "damage": ""
    }  # fmt: skip
