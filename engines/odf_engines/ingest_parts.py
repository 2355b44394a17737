"""Parts of the contract of ingests: calls of plug-ins, what is told of rejected rows, and rows between two engines.

Source: READ-1 in ``spec/readers.md``; CONV-1, CONV-6 and CONV-8 in ``spec/conversion.md``; VALID-1 in
``spec/validation.md``; ING-6, ING-7 and ING-15 in ``spec/ingest.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odf_engines.records.referenced_rows import ReferencedRows
from odf_engines.stage_metrics import StageMetrics

if TYPE_CHECKING:
    import pyarrow as pa


MAX_REASONS = 5
"""Kinds of errors of an ingest that are told; its quarantine file has all of them.  # guess: as many as people read"""

MAX_IGNORED = 100
"""Fields without a column that are counted by name.  # guess: more than people read"""

MAX_CODES = 100
"""Codes of errors of an ingest that are counted.  # guess: more than anybody declares"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugInCall:
    """A plug-in of an ingest.

    Attributes:
        name: As manifests call it.
        module: Where its class is: the module,
        attribute: and the class.
        parameters: As they were declared, JSON: an object of texts, and of lists and objects of them.
    """

    name: str
    module: str
    attribute: str
    parameters: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCall(PlugInCall):
    """A reader that takes a source apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCall(PlugInCall):
    """A merge strategy of another package (ING-56).

    Attributes:
        version: The one that the dataset declares; another one of the same name is another strategy.
    """

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterCall(PlugInCall):
    """A converter that rows go through.

    Attributes:
        secret: What its parameter ``secret`` names, of this node; None where it has none.
        rows: Of the dataset that its parameter ``dataset`` names; None where it has none, or nothing is known of it.
    """

    secret: str | None = field(default=None, repr=False)
    rows: ReferencedRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorCall(PlugInCall):
    """A validator that rows have to pass.

    Attributes:
        is_warning: Rows with its faults are taken all the same.
        rows: As of a converter.
    """

    is_warning: bool = False
    rows: ReferencedRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineReason:
    """One thing that is wrong with rows in quarantine, for people; text of the source, and so untrusted.

    Attributes:
        rows: How many rows have it.
        reason: What is wrong.
        column: Where, None for the row as a whole.
        value: The first value that has it, None for null or for the row as a whole.
        record: Number of the record that it is in, None for a result of a query.
        line: The line that begins on, None where a source has no lines.
    """

    rows: int
    reason: str
    column: str | None = None
    value: str | None = None
    record: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """Rows of a source on their way through a query that another engine runs (ING-7).

    Attributes:
        rows: Parquet: those that were read and converted; later, what the query made of them.
        quarantine: Records that could not be taken, with their errors, Parquet; None: all could.
        records: How many the source has.
        left_out: How many of them a converter left out (CONV-7).
        stages: What was done so far (STAGE-1).
        samples: As in ``IngestResponse``.
    """

    rows: Path
    quarantine: Path | None
    records: int
    left_out: int = 0
    stages: tuple[StageMetrics, ...] = ()
    samples: "Mapping[str, pa.Table]" = field(default_factory=dict)
