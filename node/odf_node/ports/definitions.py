"""What datasets say of themselves, as bytes to be searched."""

from collections.abc import Iterator
from typing import Protocol

from odf_protocol.did import DatasetId


class DefinitionStore(Protocol):
    """Blocks that define datasets, of all datasets in one go."""

    def iter_definitions(self) -> Iterator[tuple[DatasetId, bytes]]:
        """Yield each dataset with its blocks of the role DEFINITION, one behind the other, as they arrived.

        In no order; datasets that come or go meanwhile may be missing. Memory does not grow with their number.
        """
        ...
