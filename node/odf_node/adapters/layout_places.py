"""From an address to a dataset's files: folder, archive or bucket."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from odf_node.adapters.bucket_client import BUCKET_SCHEMES, parse_bucket_url
from odf_node.adapters.layout_archive import LayoutArchive, LayoutArchiveWriter
from odf_node.adapters.layout_bucket import PARALLEL, LayoutBucket
from odf_node.adapters.layout_folder import LayoutFolder
from odf_node.adapters.layout_peer import LayoutPeer
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.byte_rate import ByteRate
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.ports.layouts import HEAD_PATH, LayoutTarget

ARCHIVE_SUFFIX: Final = ".tar"
MAX_SIBLINGS: Final = 1_000  # guess: a folder with more is searched by name and identity only


def is_bucket(address: str) -> bool:
    """Say whether an address names a place in a bucket."""
    return address.partition("://")[0] in BUCKET_SCHEMES


def open_layout_peer(address: str, *, rate: ByteRate | None = None, parallel: int | None = None) -> LayoutPeer | None:
    """Give the dataset at an address that names files, None for any other address; may look at the place.

    Args:
        address: A folder, archive or place in a bucket, or something else.
        rate: How fast it is read; None: as fast as it can be.
        parallel: How many objects of a bucket are read at once; None: the usual. A disk reads one after the other.
    """
    if is_bucket(address):
        return LayoutPeer(LayoutBucket(parse_bucket_url(address)), parallel=parallel or PARALLEL, rate=rate)
    place = parse_peer_url(address)
    if not isinstance(place, Path):
        return None
    return LayoutPeer(LayoutArchive(place) if place.is_file() else LayoutFolder(place), rate=rate)


def iter_siblings(address: str) -> Iterator[str]:
    """Yield the addresses of datasets beside the one at an address, where that is a folder or archive."""
    if "://" in address and not address.startswith("file:"):
        return
    place = parse_peer_url(address)
    if not isinstance(place, Path) or not place.parent.is_dir():
        return
    for entry in sorted(place.parent.iterdir())[:MAX_SIBLINGS]:
        is_dataset = (entry / HEAD_PATH).is_file() or (entry.name.endswith(ARCHIVE_SUFFIX) and entry.is_file())
        if entry != place and is_dataset:
            yield entry.absolute().as_uri()


def find_layout_target(address: str, name: str) -> LayoutTarget | None:
    """Give the place at an address to write a dataset to, None for an address that does not name files.

    Args:
        address: The dataset's folder, ``….tar``, or its place in a bucket.
        name: What the dataset is called inside an archive.
    """
    if is_bucket(address):
        return LayoutBucket(parse_bucket_url(address))
    place = parse_peer_url(address)
    if not isinstance(place, Path):
        return None
    return LayoutArchiveWriter(place, name) if place.name.endswith(ARCHIVE_SUFFIX) else LayoutFolder(place)


def make_export_target(place: str, name: str, home: HomeFolder) -> LayoutTarget:
    """Make the place to which ``export`` writes a dataset: its own folder below ``place``, or an archive.

    Raises:
        UsageError: ``place`` is the address of a server, or in the folder of the node itself.
    """
    folder = None if is_bucket(place) else parse_peer_url(place)
    if isinstance(folder, Path) and home.contains(folder):
        raise UsageError(f"{place} is in the node's own folder, whose files are the node's alone; name another place")
    below = place if place.endswith(ARCHIVE_SUFFIX) else f"{place.rstrip('/')}/{name}"
    target = find_layout_target(below if "/" in below else f"./{below}", name)
    if target is None:
        raise UsageError(f"{place} is no folder, archive or bucket; 'odf-node push' offers datasets to servers")
    return target
