"""The few layouts that the blocks of a chain have, as they are met."""

from collections.abc import Iterator

from odf_protocol.block import Block
from odf_protocol.block_shape import Shape, find_shape

_MAX_LENGTHS = 64  # guess: ordinary chains have a handful of shapes; this bounds memory against others
_MAX_SHAPES_PER_LENGTH = 4


class KnownShapes:
    """Shapes of blocks that were decoded with care, newest first."""

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes: dict[int, list[Shape]] = {}

    def iter_matching(self, raw: bytes) -> Iterator[Shape]:
        """Yield the known shapes that a block is laid out like; its values are not judged."""
        shapes = self._shapes.get(len(raw))
        if shapes is not None:
            number = int.from_bytes(raw, "little")
            for shape in shapes:
                if shape.matches(number):
                    yield shape

    def remember(self, block: Block) -> None:
        """Keep the shape of a block, where it has one."""
        shape = find_shape(block)
        if shape is None:
            return
        shapes = self._shapes.setdefault(len(block.raw), [])
        shapes.insert(0, shape)
        del shapes[_MAX_SHAPES_PER_LENGTH:]
        if len(self._shapes) > _MAX_LENGTHS:
            del self._shapes[next(iter(self._shapes))]
