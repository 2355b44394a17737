"""What to say where a file that was accepted cannot be read any more: its bytes decayed, and this brings them back."""

from collections.abc import Iterator
from contextlib import contextmanager

from odf_node.ports import ObjectStore
from odf_node.ports.chains import ChainStore
from odf_node.ports.errors import ObjectCorruptError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.multihash import Multihash


@contextmanager
def explained_damage(
    chains: ChainStore, objects: ObjectStore, dataset_id: DatasetId, object_hash: Multihash
) -> Iterator[None]:
    """Name the object and the remedy where what is done in the block fails because the object's bytes decayed.

    Raises:
        ObjectCorruptError: They did; what was raised in the block otherwise.
    """
    try:
        yield
    except (MalformedError, RejectedError) as error:
        try:
            objects.check(object_hash)
        except ObjectCorruptError as damage:
            record = chains.find_dataset(dataset_id)
            raise damage.with_remedy(record.name if record else str(dataset_id)) from error
        raise
