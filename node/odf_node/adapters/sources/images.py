"""Which added image a fetch step means, and how it starts it.

Source: clauses ING-40 and ING-41 in ``spec/ingest.md``; ODF "FetchStep::Container"; names as in the OCI
distribution-spec, "Pulling manifests".
"""

from collections.abc import Mapping
from typing import Final

from odf_node.ports.images import AddedImage, DamagedImage, ImageShelf
from odf_protocol.errors import MalformedError
from odf_protocol.events import FetchStepContainer

# What programs in images expect where the image does not say it, as container runtimes have it.
_USUAL: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"}  # noqa: S108 - inside the sandbox


def find_image(reference: str, images: ImageShelf | None) -> AddedImage:
    """Return the added image that a manifest names: ``NAME``, or ``NAME@sha256:...`` for that one alone.

    Raises:
        MalformedError: There is none; says how to add it.
    """
    name, at, digest = reference.partition("@")
    found = images.find(name) if images else None
    if isinstance(found, DamagedImage):
        raise MalformedError("image", where=reference, expected="an image that can be read", found=found.describe())
    if found is None:
        expected = (
            f"an image of this node ('odf-node image add {name} FILE' adds it from a file that "
            f"'podman save --format oci-archive {name}' or 'docker save {name}' writes)"
        )
        raise MalformedError("image", expected=expected, found=reference)
    if at and digest not in found.digests:
        expected = f"one of the digests that the file of {name} has: {', '.join(found.digests)}"
        raise MalformedError("image", expected=expected, found=digest)
    return found


def command_of(step: FetchStepContainer, image: AddedImage) -> tuple[str, ...]:
    """Return program and arguments: a ``command`` stands for the image's entry point and its arguments too.

    Raises:
        MalformedError: Neither manifest nor image says what to run.
    """
    if step.command:
        words = (*step.command, *(step.args or ()))
    else:
        words = (*image.start.entry_point, *(image.start.arguments if step.args is None else step.args))
    if not words or not words[0]:
        raise MalformedError(
            "command", where=step.image, expected="a program to run", found="none in manifest or image"
        )
    return words


def environment_of(step: FetchStepContainer, image: AddedImage, told: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of a program: those of the image, of the manifest, and what the node tells it."""
    stated = dict(each.split("=", 1) for each in image.start.environment)
    return {**_USUAL, **stated, **{each.name: each.value or "" for each in step.env or ()}, **told}
