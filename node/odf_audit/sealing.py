"""The chain of hashes over the audit log, and the node's word for it.

Source: clauses AUDIT-4 to AUDIT-6 in ``spec/plug-ins/audit.md``.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from odf_node.records.audit import AuditRow, AuditSeal
from odf_protocol.errors import OdfError
from odf_protocol.signatures import Purpose, sign, verify

_NUMBER_BYTES: Final = 8


def hash_row(before: bytes, row: AuditRow) -> bytes:
    """Return the hash of the chain with a row behind it."""
    entry = row.entry
    line = str(entry.at), entry.actor, entry.command, entry.subject, entry.outcome.value, entry.detail
    values = [row.id, *line, row.run, row.record]
    return hashlib.sha3_256(before + json.dumps(values, separators=(",", ":")).encode("ascii")).digest()


def seal_rows(seed: bytes, chain: bytes, earlier: Sequence[AuditRow], rows: Sequence[AuditRow]) -> list[AuditRow]:
    """Put rows behind the chain: each gets its hashes; the last one, and each that outlives an archive, a signature.

    Args:
        seed: Of the node's key.
        chain: The hash so far.
        earlier: Rows that nobody sealed yet.
        rows: New ones, numbered.
    """
    for row in earlier:
        chain = hash_row(chain, row)
    sealed: list[AuditRow] = []
    for row in rows:
        after = hash_row(chain, row)
        is_signed = must_be_signed(row) or row is rows[-1]
        signature = sign(seed, Purpose.AUDIT, _payload(row.id, after)) if is_signed else None
        sealed.append(replace(row, seal=AuditSeal(chain, after, signature)))
        chain = after
    return sealed


def must_be_signed(row: AuditRow) -> bool:
    """Say whether a record has a signature of its own: those that stay when the rows before them are archived."""
    return row.entry.command in {"write", "run", "code"}


def is_signed(public_key: bytes, row: AuditRow) -> bool:
    """Say whether a sealed row is signed by a key."""
    if row.seal is None or row.seal.signature is None:
        return False
    try:
        verify(public_key, Purpose.AUDIT, _payload(row.id, row.seal.chain), row.seal.signature)
    except OdfError:
        return False
    return True


def _payload(number: int, chain: bytes) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "little") + chain


class AuditChainCheck:
    """Follows the chain row by row, and says the first thing that is wrong with it.

    Attributes:
        chain: The hash so far.
        number: Of the last row.
        rows: How many were followed.
        problem: What is wrong; empty: nothing was found.
        newest: The hash of the chain with the newest signed row.
        is_open: Records follow that no signature stands behind.
    """

    def __init__(self, is_signed: Callable[[AuditRow], bool], chain: bytes) -> None:
        self._is_signed = is_signed
        self.chain = self.newest = chain
        self.number = self.rows = 0
        self.problem = ""
        self.is_open = False

    def follow(self, row: AuditRow) -> None:
        """Follow the chain to its next row."""
        if self.problem:
            return
        self.rows += 1
        if row.id != self.number + 1:
            self.problem = f"row {self.number + 1} is missing: row {row.id} stands behind row {self.number}"
            return
        self.number = row.id
        seal = row.seal
        if seal is None:
            if row.record is not None:
                self.problem = f"row {row.id} lost its seal"
            self.chain = hash_row(self.chain, row)
            return
        if seal.before != self.chain:
            self.problem = f"a row before row {row.id} was changed, added or removed"
            return
        if seal.chain != hash_row(self.chain, row):
            self.problem = f"row {row.id} was changed"
            return
        self.chain = seal.chain
        if seal.signature is None and not must_be_signed(row):
            self.is_open = True
            return
        if not self._is_signed(row):
            self.problem = f"row {row.id} is not signed by this node's key"
            return
        self.newest, self.is_open = seal.chain, False

    def end(self) -> None:
        """End with the last row: a record behind which no signature stands was added by somebody else."""
        if not self.problem and self.is_open:
            self.problem = f"no signature stands behind row {self.number}"
