"""What ingests leave beside the chain: quarantine files, merge states, answers (FEED-1), and how long they took."""

from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import RejectedError, UnavailableError

MAX_KEPT_KEYS: Final = 10_000
"""Of a caller for a dataset.  # guess: a batch a second, repeated for almost three hours"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestKey:
    """A key under which something is asked once.

    Attributes:
        caller: Whose key it is: the id of a token; empty for whoever runs this node.
        text: The key.
        asked: SHA3-256 of everything that the answer follows from.
    """

    caller: str
    text: str
    asked: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The first answer under a key; ``sequence_number`` is that of the dataset's newest block then."""

    key: IngestKey
    sequence_number: int
    text: str


class KeyReusedError(RejectedError):
    """Something else was asked under the key before."""

    def __init__(self, key: str) -> None:
        super().__init__("FEED-2 key-is-for-one-request")
        text = f"other rows, or the same in another way, were sent under the key {key!r} before; nothing was done"
        self.args = (text,)


class KeyInUseError(UnavailableError):
    """What is asked under the key is being done now, or has just been done by somebody else."""

    def __init__(self, key: str) -> None:
        super().__init__(f"rows sent under the key {key!r} are being taken in; ask again for the answer")


KEPT_INGESTS: Final = 100
"""Newest blocks of a dataset whose figures are kept.  # guess: a quarter of daily ingests"""

MAX_PLUG_INS: Final = 200
"""Plug-ins that are summed by name; more are summed together.  # guess: ten times those that come with the program"""

OTHER_PLUG_INS: Final = "other"
"""What these are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTotal:
    """What a stage, or a plug-in of it, did in all ingests of this home since the table was made.

    ``plug_in`` is empty for the whole stage; ``batches`` it had.
    """

    stage: str
    plug_in: str
    batches: int
    seconds: float
    rows_in: int
    rows_out: int
    bad_rows: int
