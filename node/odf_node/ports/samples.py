"""The beginning of a file that somebody wants to make a dataset of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from odf_engines.sampling.process import FoundTable
    from odf_protocol.events import CompressionFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The beginning of a file, unpacked.

    Attributes:
        url: Where the file is, as a polling source names it.
        shown_as: The same for messages.
        is_local: It lies on this machine.
        content: Its first bytes, after unpacking.
        is_whole: They are all.
        compression: How it is packed.
        entry: Which file of an archive it is; None where the archive holds one.
        others: Some other files of the archive.
        table: What reads it where it is no text, ``Avro``, ``EsriShapefile``, ``Excel`` or ``Parquet``: then
            ``content`` is all of it.
        path: The file itself, where it is no text and lies on this machine unpacked; ``content`` is empty then.
    """

    url: str
    shown_as: str
    is_local: bool
    content: bytes
    is_whole: bool
    compression: "CompressionFormat | None" = None
    entry: str | None = None
    others: tuple[str, ...] = ()
    table: str | None = None
    path: "Path | None" = None


class SampleReader(Protocol):
    """Reads beginnings of files."""

    async def read_sample(self, source: str, *, limit_bytes: int) -> Sample:
        """Read a file, or a URL (``http``, ``https``, ``file``), as far as ``limit_bytes`` of what it unpacks to.

        Raises:
            SourceNotFoundError: There is nothing.
            SourceUnavailableError: It cannot be read now.
            MalformedError: It is no plain file, or damaged.
            UnsupportedError: It is packed in a way that nothing here unpacks.
        """
        ...

    async def read_table(
        self, kind: str, content: "bytes | Path", *, shown_as: str, is_whole: bool = True
    ) -> "FoundTable":
        """Find how a file that is no plain text is to be read, and read its first records so, in a sandbox.

        Args:
            kind: As ``Sample.table``, or ``XmlRows``.
            content: The file.
            shown_as: How messages call it.
            is_whole: Nothing follows.

        Raises:
            MalformedError: It is not of this kind, has no rows in columns, or costs too much.
            SandboxUnavailableError: Nothing can be isolated on this machine.
        """
        ...
