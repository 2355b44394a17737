"""The error tree: the branch says who is at fault, so the caller knows what to do.

==================  ==========================================  =================================
error               meaning                                     what to do
==================  ==========================================  =================================
MalformedError      bytes or text do not follow the format      drop, remember the sender
UnsupportedError    a version or feature we know we lack         keep the bytes, do not guess
RejectedError       well-formed, but breaks a numbered rule      drop, remember the sender, no retry
NotFoundError       nobody we asked has it                      ask somebody else
UnavailableError    a party did not answer                      retry with backoff
CorruptError        our own storage lies                        stop, tell the operator
==================  ==========================================  =================================

Misuse by our own code is ``ValueError``, ``TypeError`` or ``assert`` and never in this tree.
Fields carry the facts; ``str(error)`` is one line that states expected and found, in this order.
"""

_SHOWN_CHARACTERS = 200  # guess: enough to recognise a value, too little to flood a log with what a stranger sent


_PLACE_CHARACTERS = 1_000  # guess: nearly all paths of files are shown whole


def shown(value: object, max_characters: int = _SHOWN_CHARACTERS) -> str:
    """Return a value as a message shows it: one line, printable, cut where it is long."""
    text = str(value)
    line = text[:max_characters]
    if not line.isprintable():  # line ends and terminal codes of a stranger stay out of logs
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    if len(text) <= max_characters and len(line) <= max_characters:
        return line
    return f"{line[:max_characters]}... ({len(text)} characters)"


def _expected_and_found(expected: object, found: object) -> str:
    parts = []
    if expected is not None:
        parts.append(f"expected {shown(expected)}")
    if found is not None:
        parts.append(f"found {shown(found)}")
    return ": " + ", ".join(parts) if parts else ""


class OdfError(Exception):
    """Anything that can go wrong through data, peers or storage, as opposed to through our own mistakes."""


class MalformedError(OdfError):
    """Bytes or text do not follow their format.

    Attributes:
        what: The thing that is malformed, in the words of the format ("multihash", "AddData.new_data").
        where: Position in bytes, line, or path of the fault, if known.
        expected: What the format asks for.
        found: What is there instead.
    """

    def __init__(
        self, what: str, *, where: int | str | None = None, expected: object = None, found: object = None
    ) -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        place = (
            ""
            if where is None
            else f" at byte {where}"
            if isinstance(where, int)
            else f" at {shown(where, _PLACE_CHARACTERS)}"
        )
        super().__init__(f"malformed {what}{place}{_expected_and_found(expected, found)}")


class UnsupportedError(OdfError):
    """A version, type or feature that exists, or may exist one day, and that this program does not support.

    Attributes:
        what: The kind of thing ("block version", "union MetadataEvent").
        found: The value met.
        supported: What would have been understood, if that helps.
    """

    def __init__(self, what: str, *, found: object = None, supported: object = None) -> None:
        self.what = what
        self.found = found
        self.supported = supported
        met = "" if found is None else f": {shown(found)}"
        known = "" if supported is None else f" (supported: {shown(supported)})"
        super().__init__(f"unsupported {what}{met}{known}")


class RejectedError(OdfError):
    """Well-formed, but it breaks a rule; the sender is at fault and repeating will not help.

    Attributes:
        rule: Clause id and name, such as ``CHAIN-4 sequence-integrity``.
        sequence_number: Of the offending block, where there is one.
        expected: What the rule asks for.
        found: What is there instead.
    """

    def __init__(
        self, rule: str, *, sequence_number: int | None = None, expected: object = None, found: object = None
    ) -> None:
        self.rule = rule
        self.sequence_number = sequence_number
        self.expected = expected
        self.found = found
        place = "" if sequence_number is None else f"block {sequence_number} "
        super().__init__(f"{place}breaks {rule}{_expected_and_found(expected, found)}")


class NotFoundError(OdfError):
    """The thing does not exist where we looked."""


class UnavailableError(OdfError):
    """A party or a resource did not answer now; a later attempt may succeed."""


class CorruptError(OdfError):
    """Our own storage holds something it must not hold."""
