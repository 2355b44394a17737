"""What the contract of ingests says about converters.

Source: clauses CONV-1 and CONV-6 in ``spec/conversion.md``.
"""

from dataclasses import dataclass, field

__all__ = ["ConverterCall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterCall:
    """A converter that rows go through.

    Attributes:
        name: As manifests call it.
        module: Where its class is: the module,
        attribute: and the class.
        parameters: As they were declared, JSON: an object of texts, and of lists and objects of them.
        secret: What its parameter ``secret`` names, of this node; None where it has none.
    """

    name: str
    module: str
    attribute: str
    parameters: str = "{}"
    secret: str | None = field(default=None, repr=False)
