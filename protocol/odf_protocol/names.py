"""Names of datasets, accounts and repositories, and the ways to refer to a dataset.

Names look like host names and compare without regard to case; they keep the spelling they were given.

Source: ODF "Dataset Identity" (aliases and references); clauses NAME-1 to NAME-7 of ``spec/odf-profile.md``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError

MAX_NAME_CHARACTERS = 100  # what the reference implementation's database holds; its grammar has no limit
MAX_REFERENCE_CHARACTERS = 2048  # guess: longer URLs break elsewhere

# [A-Za-z0-9]+ groups joined by single hyphens or dots; linear, as no two alternatives start alike.
_NAME = re.compile(r"[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*")
_NAME_PATTERN = re.compile(r"[A-Za-z0-9%]+(?:[-.][A-Za-z0-9%]+)*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\+[A-Za-z][A-Za-z0-9]*)*://\S+")


@dataclass(frozen=True, slots=True, order=True)
class _Name:
    """A name; equality, hash and order ignore case."""

    key: str = field(init=False, repr=False)
    text: str = field(compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > MAX_NAME_CHARACTERS or not _NAME.fullmatch(self.text):
            expected = f"letters and digits joined by single '-' or '.', up to {MAX_NAME_CHARACTERS} characters"
            raise MalformedError(type(self).__name__, expected=expected, found=repr(self.text))
        object.__setattr__(self, "key", self.text.lower())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name.

        Raises:
            MalformedError: Not a name.
        """
        return cls(text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, order=True)
class DatasetName(_Name):
    """What a dataset is called in one account."""


@dataclass(frozen=True, slots=True, order=True)
class AccountName(_Name):
    """Who owns datasets in a node or repository of many."""


@dataclass(frozen=True, slots=True, order=True)
class RepoName(_Name):
    """What the user calls a remote repository."""


@dataclass(frozen=True, slots=True)
class DatasetAlias:
    """``name`` or ``account/name``.

    >>> DatasetAlias.parse("Acme/Sales") == DatasetAlias.parse("acme/sales")
    True
    """

    account: AccountName | None
    name: DatasetName

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an alias.

        Raises:
            MalformedError: More than two parts, or a part that is not a name.
        """
        *account, name = text.split("/", 2)
        if len(account) > 1:
            raise MalformedError("DatasetAlias", expected="[account/]name", found=repr(text))
        return cls(AccountName(account[0]) if account else None, DatasetName(name))

    def __str__(self) -> str:
        return f"{self.account}/{self.name}" if self.account else str(self.name)


@dataclass(frozen=True, slots=True)
class RemoteAlias:
    """``repository/name`` or ``repository/account/name``."""

    repo: RepoName
    alias: DatasetAlias

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an alias in a repository.

        Raises:
            MalformedError: Fewer than two or more than three parts, or a part that is not a name.
        """
        repo, separator, alias = text.partition("/")
        if not separator:
            raise MalformedError("RemoteAlias", expected="repository/[account/]name", found=repr(text))
        return cls(RepoName(repo), DatasetAlias.parse(alias))

    def __str__(self) -> str:
        return f"{self.repo}/{self.alias}"


@dataclass(frozen=True, slots=True)
class RemoteId:
    """``repository/did:odf:...``."""

    repo: RepoName
    id: DatasetId

    def __str__(self) -> str:
        return f"{self.repo}/{self.id}"


@dataclass(frozen=True, slots=True)
class DatasetUrl:
    """Where a dataset can be fetched: ``scheme://...``, with schemes joined by ``+`` such as ``odf+https``."""

    text: str

    def __post_init__(self) -> None:
        if len(self.text) > MAX_REFERENCE_CHARACTERS or not _URL.fullmatch(self.text):
            raise MalformedError("DatasetUrl", expected="scheme://...", found=repr(self.text))

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes in lower case, outermost first: ``("odf", "https")``."""
        return tuple(self.text.partition("://")[0].lower().split("+"))

    def __str__(self) -> str:
        return self.text


DatasetRef = DatasetId | DatasetAlias
AnyRef = DatasetId | DatasetAlias | RemoteAlias | RemoteId | DatasetUrl


def parse_dataset_ref(text: str) -> DatasetRef:
    """Read a reference to a dataset of this node: a DID or an alias.

    Raises:
        MalformedError: Neither.
        UnsupportedError: A DID with a key of another kind.
    """
    if text.startswith(DatasetId.scheme):
        return DatasetId.parse(text)
    return DatasetAlias.parse(text)


def parse_any_ref(text: str, *, is_repo: Callable[[RepoName], bool]) -> AnyRef:
    """Read a reference to a dataset anywhere.

    Args:
        text: DID, alias, alias or DID in a repository, or URL.
        is_repo: Whether a repository of this name is known. ``a/b`` can be an account's dataset or a
            repository's; it is the repository's if there is one.

    Raises:
        MalformedError: None of these.
        UnsupportedError: A DID with a key of another kind.
    """
    if len(text) > MAX_REFERENCE_CHARACTERS:
        raise MalformedError("reference", expected=f"at most {MAX_REFERENCE_CHARACTERS} characters", found=len(text))
    if "://" in text:
        return DatasetUrl(text)
    head, separator, rest = text.partition("/")
    if separator and rest.startswith(DatasetId.scheme):
        return RemoteId(RepoName(head), DatasetId.parse(rest))
    if text.count("/") == 2 or (separator and is_repo(RepoName(head))):
        return RemoteAlias.parse(text)
    return parse_dataset_ref(text)


@dataclass(frozen=True, slots=True)
class DatasetPattern:
    """An alias in which ``%`` stands for any characters, none included; it does not cross ``/``.

    >>> DatasetPattern.parse("countries.%").matches(DatasetAlias.parse("Countries.daily"))
    True
    """

    account: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern.

        Raises:
            MalformedError: More than two parts, or a character that no name has.
        """
        *account, name = text.split("/", 2)
        for part in (*account, name):
            if len(account) > 1 or len(part) > MAX_NAME_CHARACTERS or not _NAME_PATTERN.fullmatch(part):
                raise MalformedError("DatasetPattern", expected="[account/]name with '%'", found=repr(text))
        return cls(account[0] if account else None, name)

    def matches(self, alias: DatasetAlias) -> bool:
        """Tell whether an alias fits; a pattern without account fits any account."""
        if self.account is not None and not fits_pattern(self.account, alias.account.text if alias.account else ""):
            return False
        return fits_pattern(self.name, alias.name.text)

    def __str__(self) -> str:
        return f"{self.account}/{self.name}" if self.account is not None else self.name


def fits_pattern(pattern: str, text: str) -> bool:
    """Match as SQL's LIKE does, ``%`` standing for any text, case ignored (NAME-7).

    Fixed ends first, then the middle parts left to right, so the cost is linear in practice.
    """
    first, *middle = pattern.lower().split("%")
    text = text.lower()
    if not middle:
        return text == first
    last = middle.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        position = text.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return True
