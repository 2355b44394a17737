"""What the contract of ingests says about readers.

Source: clause READ-1 in ``spec/readers.md``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCall:
    """A reader that takes a source apart.

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
