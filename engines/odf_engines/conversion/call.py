"""What the contract of ingests says about converters.

Source: clauses CONV-1, CONV-6 and CONV-8 in ``spec/conversion.md``.
"""

from dataclasses import dataclass, field

from odf_engines.records.referenced_rows import ReferencedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterCall:
    """A converter that rows go through.

    Attributes:
        name: As manifests call it.
        module: Where its class is: the module,
        attribute: and the class.
        parameters: As they were declared, JSON: an object of texts, and of lists and objects of them.
        secret: What its parameter ``secret`` names, of this node; None where it has none.
        rows: Of the dataset that its parameter ``dataset`` names; None where it has none, or nothing is known of it.
    """

    name: str
    module: str
    attribute: str
    parameters: str = "{}"
    secret: str | None = field(default=None, repr=False)
    rows: ReferencedRows | None = None
