"""Where things are on a node: ODF's paths below the dataset's name, ours below one prefix (EX-1, EX-2)."""

from enum import StrEnum
from typing import Final
from urllib.parse import quote

from odf_protocol.multihash import Multihash

PROTOCOL_VERSION: Final = 1
PREFIX: Final = f"_odf/v{PROTOCOL_VERSION}"
"""No dataset can have this name: names begin with a letter or a digit (ODF "Dataset Identity")."""


class ObjectKind(StrEnum):
    """What a block names an object as; the value is its folder in ODF's repository layout."""

    DATA = "data"
    CHECKPOINT = "checkpoints"


def head_path(dataset: str) -> str:
    """Our head of a dataset, by name or identity."""
    return f"{dataset_path(dataset)}/head"


def dataset_path(dataset: str) -> str:
    """What we say about one dataset, by name or identity."""
    return f"{PREFIX}/datasets/{quote(dataset, safe=':')}"


def leaves_path(dataset: str, object_hash: Multihash) -> str:
    """The list of leaves of an object of a dataset."""
    return f"{dataset_path(dataset)}/leaves/{object_hash}"


def pushes_path(push_id: str | None = None) -> str:
    """All pushes, or one."""
    return f"{PREFIX}/pushes" if push_id is None else f"{PREFIX}/pushes/{quote(push_id, safe='')}"


def gossip_path() -> str:
    """Where gossip is told."""
    return f"{PREFIX}/gossip"


def object_path(kind: ObjectKind, object_hash: Multihash) -> str:
    """An object, below the dataset's address."""
    return f"{kind.value}/{object_hash}"


def block_path(block_hash: Multihash) -> str:
    """A block, below the dataset's address."""
    return f"blocks/{block_hash}"
