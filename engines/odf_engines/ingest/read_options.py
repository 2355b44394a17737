"""What the options of a read step mean, and which of them are not built: known without a file.

Source: ODF ReadStep; spec/ingest.md ING-2, ING-3, ING-16, ING-18.
"""

from typing import Final

from odf_engines.ingest.csv_grammar import CsvDialect
from odf_engines.records.time_patterns import TimePatterns, parse_pattern
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson

_ENCODINGS: Final = ("utf8", "utf-8")


class UnsupportedOptionError(UnsupportedError):
    """An option of a read step has a value that is not built.

    Attributes:
        option: Its name, as manifests spell it.
    """

    def __init__(self, option: str, *, found: object, supported: str) -> None:
        super().__init__(f"{option} of a read step", found=found, supported=supported)
        self.option = option


def check_encoding(step: ReadStep) -> None:
    """Reject a text that is not in UTF-8.

    Raises:
        UnsupportedOptionError: It is declared so.
    """
    encoding = getattr(step, "encoding", None) or "utf8"
    if encoding.lower() not in _ENCODINGS:
        raise UnsupportedOptionError("encoding", found=encoding, supported="utf8; convert the file beforehand")


def parse_times(step: ReadStep) -> TimePatterns:
    """Say how dates and timestamps are written.

    Raises:
        UnsupportedOptionError: In a pattern that is not one.
    """
    if not isinstance(step, ReadStepCsv | ReadStepJson | ReadStepNdJson):
        return TimePatterns()
    patterns = {}
    for option, text, has_time in (
        ("dateFormat", step.date_format, False),
        ("timestampFormat", step.timestamp_format, True),
    ):
        try:
            patterns[option] = parse_pattern(text, has_time=has_time)
        except UnsupportedError as error:
            raise UnsupportedOptionError(option, found=text, supported=str(error.supported)) from error
    return TimePatterns(patterns["dateFormat"], patterns["timestampFormat"])


def parse_dialect(step: ReadStepCsv) -> CsvDialect:
    """Read the characters that a CSV file is made with.

    Raises:
        UnsupportedOptionError: They are not single ASCII characters, or a null is written as a word.
    """
    if step.null_value not in (None, ""):
        raise UnsupportedOptionError("nullValue", found=step.null_value, supported="the empty text")
    separator = _character("separator", step.separator, ",")
    quote = _character("quote", step.quote, '"')
    escape = None if step.escape == "" else _character("escape", step.escape, "\\")
    return CsvDialect(separator, quote, None if escape == quote else escape)


def _character(option: str, text: str | None, default: str) -> bytes:
    character = default if text is None else text
    if len(character) != 1 or not character.isascii() or character in "\r\n\0":
        raise UnsupportedOptionError(option, found=repr(character), supported="one ASCII character")
    return character.encode()
