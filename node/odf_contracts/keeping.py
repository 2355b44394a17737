"""What a home keeps of contracts: ``contracts/NAME.json`` each, and what was found by them, in the cache.

A contract's file holds the text as it was given, the edge it is of and the versions that were let pass, each with a
signature. Findings follow from contract and version, and are made again where the cache was deleted.

Source: CONTRACT-7, CONTRACT-9 and CONTRACT-11.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from odf_contracts.reading import MAX_BYTES, parse_contract
from odf_contracts.rules import ContractObject, HoldAction
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeBusyError, HomeFullError, HomeReadOnlyError, mapped_os_errors
from odf_protocol.did import DatasetId
from odf_protocol.errors import CorruptError, MalformedError
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_document
from odf_protocol.timestamp import Timestamp

FOLDER: Final = "contracts"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_FILE_BYTES: Final = 4 * MAX_BYTES  # the text as JSON, and some thousand passes
_MAX_PASS_BYTES: Final = 4_000
_TIMEOUT_S: Final = 30.0  # as of the home's database
_PRIMARY_CODE: Final = 0xFF
MAX_REASON: Final = 1_000  # as the reason of a correction


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

    def list_passes(self) -> list[ContractPass]:
        """List what was let pass; each signature is verified.

        Raises:
            RejectedError, MalformedError: One is not a statement of a node about this contract.
        """
        found = []
        for raw in self.passes:
            signed = SignedDocument.decode(raw, Purpose.WAIVER, max_payload_bytes=_MAX_PASS_BYTES)
            found.append(msgspec.json.decode(signed.payload, type=ContractPass))
        return found

    def is_passed(self, block: Multihash) -> bool:
        """Say whether an operator let a version pass under this text of the contract."""
        return any(each.block == str(block) and each.digest == self.digest for each in self.list_passes())


class ContractStore:
    """The contracts of one home."""

    def __init__(self, folder: HomeFolder) -> None:
        self._folder = folder.path / FOLDER

    def has_any(self) -> bool:
        """Say whether there are contracts; reads none."""
        with mapped_os_errors(self._folder):
            return any(self._folder.glob("*.json"))

    def list_contracts(self) -> list[KeptContract]:
        """List all, by name.

        Raises:
            CorruptError: A file is none that this program wrote.
        """
        with mapped_os_errors(self._folder):
            paths = sorted(self._folder.glob("*.json"))
        return [self._read(path.stem) for path in paths]

    def list_of(self, dataset: DatasetId, consumer: DatasetId) -> list[KeptContract]:
        """List those on what a derivative reads of a dataset."""
        return [each for each in self.list_contracts() if each.dataset == dataset and each.consumer in {None, consumer}]

    def get(self, name: str) -> KeptContract:
        """Find one.

        Raises:
            UsageError: There is none of that name.
        """
        names = [each.name for each in self.list_contracts()]
        if name not in names:
            known = f"there are {', '.join(names)}" if names else "'odf-node contract add FILE' adds one"
            raise UsageError(f"this node has no contract '{name}'; {known}")
        return self._read(name)

    def put(self, contract: KeptContract) -> None:
        """Keep one, in the place of that of the same name.

        Raises:
            UsageError: Its name is none.
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
        with mapped_os_errors(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}")
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(kept))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)

    def remove(self, contract: KeptContract) -> None:
        """Forget one."""
        with mapped_os_errors(self._folder):
            (self._folder / f"{contract.name}.json").unlink(missing_ok=True)

    def _read(self, name: str) -> KeptContract:
        path = self._folder / f"{name}.json"
        with mapped_os_errors(path):
            raw = path.read_bytes() if path.stat().st_size <= _MAX_FILE_BYTES else b""
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


class FindingNotes:
    """Findings by contract and version; every call opens the database for itself."""

    def __init__(self, folder: HomeFolder) -> None:
        self._path = folder.cache / "contracts.sqlite"

    def find(self, contract: KeptContract, blocks: Sequence[Multihash]) -> dict[Multihash, NotedFinding]:
        """Find what is noted of versions."""
        if not self._path.exists():
            return {}
        wanted = {str(each): each for each in blocks}
        with self._opened() as connection:
            rows = connection.execute("SELECT block, finding FROM findings WHERE digest = ?", (contract.digest,))
            return {
                wanted[block]: msgspec.json.decode(finding, type=NotedFinding)
                for block, finding in rows
                if block in wanted
            }

    def put(self, contract: KeptContract, block: Multihash, finding: NotedFinding) -> None:
        """Note what was found of a version."""
        with self._opened() as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO findings VALUES (?, ?, ?)",
                (contract.digest, str(block), msgspec.json.encode(finding)),
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with mapped_os_errors(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _mapped_errors(self._path), closing(self._connect()) as connection:
            yield connection

    def _connect(self) -> sqlite3.Connection:
        """Open the database; one that is broken is begun anew."""
        try:
            return _open(self._path)
        except sqlite3.OperationalError:
            raise  # says nothing about what is in it
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
        return _open(self._path)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_TIMEOUT_S)
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS findings"
            " (digest TEXT NOT NULL, block TEXT NOT NULL, finding BLOB NOT NULL, PRIMARY KEY (digest, block))"
            " WITHOUT ROWID"
        )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _mapped_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = error.sqlite_errorcode & _PRIMARY_CODE
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise HomeBusyError(path, _TIMEOUT_S) from error
        if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
            raise HomeFullError(path, str(error)) from error
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}:
            raise HomeReadOnlyError(path, str(error)) from error
        raise
