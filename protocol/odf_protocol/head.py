"""The newest block of a chain, by number and hash; ``heads`` has the documents that vouch for it."""

from dataclasses import dataclass

from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block of a chain."""

    sequence_number: int
    hash: Multihash
