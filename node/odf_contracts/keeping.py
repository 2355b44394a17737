"""What a home keeps of contracts: ``contracts/NAME.json`` each, and what was found by them, in the cache.

A contract's file holds the text as it was given, the edge it is of and the versions that were let pass, each with a
signature. Findings follow from contract and version, and are made again where the cache was deleted.

Source: CONTRACT-7, CONTRACT-9 and CONTRACT-11.
"""

import hashlib
import os
import re
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from odf_contracts.reading import MAX_BYTES, parse_contract
from odf_contracts.rules import ContractObject, HoldAction
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import mapped_os_errors
from odf_node.store.cache_database import CacheDatabase
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import CorruptError, MalformedError, RejectedError
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_document
from odf_protocol.timestamp import Timestamp

FOLDER: Final = "contracts"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_FILE_BYTES: Final = 4 * MAX_BYTES  # the text as JSON, and some thousand passes
_NOTES_VERSION: Final = 1  # of the table of findings
MAX_REASON: Final = 1_000  # as the reason of a correction
_MAX_PASS_BYTES: Final = 6 * MAX_REASON + 2_000  # JSON writes a character in six bytes at most; hashes and names


class ContractPass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That an operator lets one version pass; signed by the node.

    Attributes:
        contract: Its name here.
        digest: Of its text, which the pass is about.
        dataset: Which.
        block: The hash of the version's block.
        version: Its number.
        reason: Why.
        at: When.
    """

    contract: str
    digest: str
    dataset: str
    block: str
    version: int
    reason: str
    at: str


class _KeptContract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    source: str
    table: str
    dataset: str
    consumer: str | None
    action: HoldAction
    added: str
    passes: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class KeptContract:
    """A contract on what derivatives of this node read of a dataset.

    Attributes:
        name: Here.
        source: The name of its file.
        text: Of the file, as it was given.
        table: The object of the contract that the dataset is.
        dataset: Which is judged.
        consumer: The derivative that it is for; None: all that read the dataset.
        action: What a version does that breaks it.
        added: When it was added.
        passes: Signed statements that let versions pass.
    """

    name: str
    source: str
    text: str
    table: str
    dataset: DatasetId
    consumer: DatasetId | None
    action: HoldAction
    added: Timestamp
    passes: tuple[bytes, ...] = ()

    @cached_property
    def rules(self) -> ContractObject:
        """What it says of the dataset."""
        found = parse_contract(self.text.encode(), self.source)
        return next(each for each in found.objects if each.name == self.table)

    @property
    def digest(self) -> str:
        """Of all that a finding follows from beside the version."""
        return hashlib.sha3_256(f"{self.table}\n{self.text}".encode()).hexdigest()

    def list_passes(self, signer: DidKey | None) -> list[ContractPass]:
        """List what was let pass under this text of the contract; each signature is verified.

        Statements about an earlier text, or another dataset that the name stood for, are kept and passed over.

        Args:
            signer: This node; None: it signed nothing yet.

        Raises:
            RejectedError, MalformedError: One is not a statement of this node.
        """
        found = []
        for raw in self.passes:
            signed = SignedDocument.decode(raw, Purpose.WAIVER, max_payload_bytes=_MAX_PASS_BYTES)
            if signed.signer != signer:
                raise RejectedError("CONTRACT-11 passes-are-of-this-node", expected=signer, found=signed.signer)
            try:
                statement = msgspec.json.decode(signed.payload, type=ContractPass)
            except msgspec.DecodeError as error:
                raise MalformedError("contract-waiver", expected="what a version was let pass", found=error) from error
            if (statement.contract, statement.digest, statement.dataset) == (self.name, self.digest, str(self.dataset)):
                found.append(statement)
        return found


class ContractStore:
    """The contracts of one home."""

    def __init__(self, folder: HomeFolder) -> None:
        self._folder = folder.path / FOLDER

    def has_any(self) -> bool:
        """Say whether there are contracts; reads none."""
        return bool(self._list_names())

    def list_contracts(self) -> list[KeptContract]:
        """List all, by name.

        Raises:
            CorruptError: A file is none that this program wrote.
        """
        found = [self.find(name) for name in self._list_names()]
        return [each for each in found if each is not None]

    def list_of(self, dataset: DatasetId, consumer: DatasetId) -> list[KeptContract]:
        """List those on what a derivative reads of a dataset."""
        return [each for each in self.list_contracts() if each.dataset == dataset and each.consumer in {None, consumer}]

    def get(self, name: str) -> KeptContract:
        """Find one.

        Raises:
            UsageError: There is none of that name.
            CorruptError: Its file is none that this program wrote.
        """
        found = self.find(name)
        if found is None:
            raise self._unknown(name)
        return found

    def find(self, name: str) -> KeptContract | None:
        """Find one, or None; errors as ``get``."""
        return self._read(name) if _NAME.fullmatch(name) else None

    def _list_names(self) -> list[str]:
        """List the names of contracts; what else lies in the folder, as a draft that a kill left, is passed over."""
        with mapped_os_errors(self._folder):
            return sorted(path.stem for path in self._folder.glob("*.json") if _NAME.fullmatch(path.stem))

    def _unknown(self, name: str) -> UsageError:
        names = self._list_names()
        known = f"there are {', '.join(names)}" if names else "'odf-node contract add FILE' adds one"
        return UsageError(f"this node has no contract '{name}'; {known}")

    def put(self, contract: KeptContract) -> None:
        """Keep one, in the place of that of the same name.

        Raises:
            UsageError: Its name is none, or more is kept of it than is read again.
        """
        if not _NAME.fullmatch(contract.name):
            raise UsageError("the name of a contract has 1 to 100 letters, digits, dots, hyphens and underscores")
        kept = _KeptContract(
            contract.text,
            contract.source,
            contract.table,
            str(contract.dataset),
            None if contract.consumer is None else str(contract.consumer),
            contract.action,
            str(contract.added),
            contract.passes,
        )
        path = self._folder / f"{contract.name}.json"
        raw = msgspec.json.encode(kept)
        if len(raw) > _MAX_FILE_BYTES:
            raise UsageError(
                f"contract {contract.name} and the {len(contract.passes):,} versions that it let pass are more than "
                f"{_MAX_FILE_BYTES:,} bytes; remove it and add it again"
            )
        with mapped_os_errors(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._folder / f".{contract.name}.draft"
            with draft.open("wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)

    def remove(self, name: str) -> None:
        """Forget one, whatever its file holds.

        Raises:
            UsageError: There is none of that name.
        """
        if not _NAME.fullmatch(name):
            raise self._unknown(name)
        with mapped_os_errors(self._folder):
            try:
                (self._folder / f"{name}.json").unlink()
            except FileNotFoundError as error:
                raise self._unknown(name) from error

    def _read(self, name: str) -> KeptContract | None:
        """Read one; None: it is not there, or was removed meanwhile."""
        path = self._folder / f"{name}.json"
        with mapped_os_errors(path):
            try:
                raw = path.read_bytes() if path.stat().st_size <= _MAX_FILE_BYTES else b""
            except FileNotFoundError:
                return None
        try:
            kept = msgspec.json.decode(raw, type=_KeptContract)
            return KeptContract(
                name,
                kept.source,
                kept.text,
                kept.table,
                DatasetId.parse(kept.dataset),
                None if kept.consumer is None else DatasetId.parse(kept.consumer),
                kept.action,
                Timestamp.parse(kept.added),
                kept.passes,
            )
        except (msgspec.DecodeError, MalformedError) as error:
            raise CorruptError(
                f"{path} is no contract that this program wrote: {error}; remove it and add it again"
            ) from error


def sign_pass(home: Home, statement: ContractPass) -> bytes:
    """Sign that a version may pass, with the node's key."""
    key = home.keys.get_or_create_node_key()
    return sign_document(key.seed, Purpose.WAIVER, msgspec.json.encode(statement)).to_bytes()


def find_signer(home: Home) -> DidKey | None:
    """Find who signs that a version may pass: this node; None: it has no key yet."""
    key = home.keys.find_node_key()
    return None if key is None else DidKey(key.public_key())


class NotedFinding(msgspec.Struct, frozen=True):
    """What was found of a version by a contract.

    Attributes:
        broken: A sentence for each rule that it breaks.
        warned: A sentence for each rule that it breaks and that only warns.
        is_open: It could not be judged, and is judged again.
    """

    broken: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    is_open: bool = False


_MAKE: Final = (
    "DROP TABLE IF EXISTS findings",
    """
CREATE TABLE findings (
    digest TEXT NOT NULL, block TEXT NOT NULL, before INTEGER NOT NULL, finding BLOB NOT NULL,
    PRIMARY KEY (digest, block, before)
) WITHOUT ROWID
""",
)


class FindingNotes:
    """Findings by contract, version and what the version was compared with; a cache, begun anew where it is broken.

    Every call opens the database for itself.
    """

    def __init__(self, folder: HomeFolder) -> None:
        self._database = CacheDatabase(folder.cache / "contracts.sqlite", _NOTES_VERSION, _MAKE)

    def find(self, contract: KeptContract) -> dict[tuple[str, int | None], NotedFinding]:
        """Find what is noted by a contract, by a version's block and the number of the version it was compared with."""
        wanted = "SELECT block, before, finding FROM findings WHERE digest = ?"
        rows: list[tuple[str, int, bytes]] = self._database.read(
            [], lambda opened: opened.execute(wanted, (contract.digest,)).fetchall()
        )
        found: dict[tuple[str, int | None], NotedFinding] = {}
        for block, before, finding in rows:
            with suppress(msgspec.DecodeError):  # what cannot be read is judged again
                found[block, None if before < 0 else before] = msgspec.json.decode(finding, type=NotedFinding)
        return found

    def put(self, contract: KeptContract, block: Multihash, before: int | None, finding: NotedFinding) -> None:
        """Note what was found of a version, compared with another one."""
        row = contract.digest, str(block), -1 if before is None else before, msgspec.json.encode(finding)

        def work(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?)", row)

        self._database.use(work)
