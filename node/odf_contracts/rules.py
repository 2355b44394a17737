"""What a contract says that can be checked here, and what it says that cannot.

Source: CONTRACT-1 to CONTRACT-6 in ``spec/plug-ins/contracts.md``.
"""

from dataclasses import dataclass
from enum import StrEnum

from odf_contracts.bounds import Bound


class HoldAction(StrEnum):
    """What a version that breaks a contract does at its edge."""

    BLOCK = "block"
    """Derivatives keep the last good version, and their pull fails."""
    HOLD = "hold"
    """Derivatives keep the last good version, and their pull succeeds."""
    WARN = "warn"
    """It is said, and derivatives go on."""


class MeasureKind(StrEnum):
    """What is measured of the rows after a version."""

    ROW_COUNT = "rowCount"
    NULLS = "nullValues"
    MISSING = "missingValues"
    INVALID = "invalidValues"
    DUPLICATES = "duplicateValues"
    QUERY = "sql"
    AHEAD = "eventTimeAhead"
    """Rows whose event time is later than the version's publication, by more than a tolerance in seconds."""
    DAYS_MISSING = "calendarDaysMissing"
    """Days of the calendar between the first and the last event time that have no row."""
    FALLS = "cumulativeFalls"
    """Rows below the one before in time, within a key."""
    OF_PREVIOUS = "rowsOfPrevious"
    """Rows, in percent of those of the version before."""
    REWRITTEN = "rowsRewritten"
    """Rows of the version before that are not there any more as they were, in percent of them."""
    LATENCY = "latency"
    """Seconds from the newest event time to the publication."""
    GAP = "frequency"
    """Seconds from the publication of the version before to that of this one."""
    DRIFT = "drift"
    """How far the distribution of a column is from that of the version before."""
    COLUMN = "schema"
    """1: the column is there, with its type; 0: it is not."""


@dataclass(frozen=True, slots=True)
class RuleMeasure:
    """What is measured.

    Attributes:
        kind: Which measure.
        columns: Of the dataset, as the contract names them.
        values: Texts that are missing or valid, a query, a measure of drift, a logical type: what the kind asks for.
        pattern: A regular expression that valid values match.
        low: The least valid number or length.
        high: The largest valid number or length.
        is_length: ``low`` and ``high`` are lengths of texts.
        excludes_low: ``low`` itself is not valid.
        excludes_high: ``high`` itself is not valid.
        with_null: Null is among the missing values.
        number: A tolerance in seconds.
    """

    kind: MeasureKind
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    pattern: str | None = None
    low: float | None = None
    high: float | None = None
    is_length: bool = False
    excludes_low: bool = False
    excludes_high: bool = False
    with_null: bool = False
    number: float = 0.0


@dataclass(frozen=True, slots=True)
class ContractRule:
    """One rule of a contract.

    Attributes:
        line: In the file.
        path: Field path in the file.
        measure: What is measured.
        bound: What the number must be.
        is_percent: The number is a share of all rows, in percent.
        only_warns: It never holds a version.
        description: As the file says it; empty: nothing.
    """

    line: int
    path: str
    measure: RuleMeasure
    bound: Bound
    is_percent: bool = False
    only_warns: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class UncheckedLine:
    """What a contract says that is not checked here, with the line and the reason."""

    line: int
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContractColumn:
    """A column as a contract calls it, as the data call it, and the line of the file."""

    name: str
    column: str
    line: int


@dataclass(frozen=True, slots=True)
class ContractObject:
    """What a contract says of one table.

    Attributes:
        name: As the contract calls it.
        physical_name: As the data are called; None: like ``name``.
        columns: Those that it names.
        rules: What is checked, in the order of the file.
        unchecked: What is not.
    """

    name: str
    physical_name: str | None
    columns: tuple[ContractColumn, ...]
    rules: tuple[ContractRule, ...]
    unchecked: tuple[UncheckedLine, ...]


@dataclass(frozen=True, slots=True)
class DataContract:
    """A contract file.

    Attributes:
        id: As the file says.
        version: As the file says.
        action: What the file asks for; None: nothing.
        objects: Its tables.
    """

    id: str
    version: str
    action: HoldAction | None
    objects: tuple[ContractObject, ...]
