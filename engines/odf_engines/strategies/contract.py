"""The contract of merge strategies: what the rest of an ingest asks of one, and what one may ask for.

A strategy is an event of the chain, declared in the protocol, and this class about it. All that is said of strategies
elsewhere (columns, states, rows that are rejected) is read from its attributes.

Source: ODF "Merge strategies"; spec/ingest.md ING-8 to ING-12.
"""

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

Merged = TypeVar("Merged")
"""What a merge gives, which strategies pass on as it is."""

Result_co = TypeVar("Result_co", covariant=True)


class Keeps(StrEnum):
    """What a strategy has to know of earlier rows (ING-12)."""

    NOTHING = "nothing"
    KEYS = "keys"
    ROWS = "rows"


class RowsToMerge(Protocol[Result_co]):
    """New rows of one ingest and the state: the ways in which they can meet."""

    def append(self) -> Result_co:
        """Take all rows, by event time."""
        ...

    def append_unknown(self) -> Result_co:
        """Take the rows whose key is not in the state, by event time."""
        ...

    def compare(self, compared: tuple[str, ...] | None, *, retracts_missing: bool) -> Result_co:
        """Take the rows that are new or differ from the row of their key.

        Args:
            compared: Names of the columns whose change is a change; None: all but the key.
            retracts_missing: The rows are the whole truth, and the first of each key counts; otherwise the last does.
        """
        ...

    def pass_on(self) -> Result_co:
        """Take rows with the operations that they have, by key."""
        ...


class Strategy(ABC):
    """A merge strategy.

    Attributes:
        event: The class of its event.
        keeps: What the projected state holds.
        takes_operation: A column of operations in the source is what it does, and no data.
        needs_operation: There has to be such a column.
        max_operation: The highest operation that a row may have.
        operation_fault: What is wrong with another one.
        takes_null_operation: A row without one is appended.
        retracts_missing: What a batch lacks is taken back (ING-48).
        rejects_timeless_keys: A null event time in the key is rejected, as it would be another key each time.
        version: Of one of another package; another version is another strategy (ING-56).
    """

    event: ClassVar[type[Any]]
    keeps: ClassVar[Keeps] = Keeps.NOTHING
    takes_operation: ClassVar[bool] = False
    needs_operation: ClassVar[bool] = False
    max_operation: ClassVar[int] = 0
    operation_fault: ClassVar[str] = ""
    takes_null_operation: ClassVar[bool] = False
    retracts_missing: ClassVar[bool] = False
    rejects_timeless_keys: ClassVar[bool] = False
    version: ClassVar[str] = ""

    @abstractmethod
    def merge(self, parameters: Any, rows: RowsToMerge[Merged]) -> Merged:
        """Merge rows; ``parameters`` is the event."""
