"""Container images that the operator of this node added, for sources whose rows a program fetches (ING-40)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageStart:
    """How an image is started where a manifest says nothing else; part of what its digest covers.

    Attributes:
        entry_point: What is run.
        arguments: Behind it.
        environment: ``NAME=value``, in order.
        folder: Where it starts, absolute.
    """

    entry_point: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedImage:
    """An image that was added.

    Attributes:
        name: As manifests name it, without a digest.
        digests: ``sha256:...`` by which a manifest can say which image of this name it means.
        contents: Digest of its files and of how it is started, text.
        start: How it is started.
        has_network: Whether the operator lets its programs use the network of this machine.
        file_bytes: Of the file that it came from.
        added_at: RFC 3339.
    """

    name: str
    digests: tuple[str, ...]
    contents: str
    start: ImageStart
    has_network: bool
    file_bytes: int
    added_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedImage:
    """An added image of which nothing can be read."""

    name: str
    found: str

    def describe(self) -> str:
        """Say what is wrong, and what to do."""
        return f"{self.found}; 'odf-node image remove {self.name}' forgets it, then add it again"
