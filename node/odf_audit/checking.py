"""The whole audit log followed from its beginning, or from the oldest archive that is there.

Source: clauses AUDIT-6 and AUDIT-10 in ``spec/plug-ins/audit.md``.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from odf_audit.archives import iter_archive, path_of
from odf_audit.sealing import AuditChainCheck, hash_row, is_signed
from odf_node.home import Home
from odf_node.records.audit import AuditArchive, AuditRow
from odf_node.store.audit_log import NO_CHAIN
from odf_protocol.errors import MalformedError

_PORTION: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """What following the log found.

    Attributes:
        rows: That were followed.
        archives: Files among them.
        first: Number of the first row that was followed.
        newest: Hash of the chain with the newest signed row, in hexadecimal; whoever keeps it elsewhere finds out
            later whether rows were cut off the end.
        problem: The first thing that is wrong; empty: nothing.
    """

    rows: int
    archives: int
    first: int
    newest: str
    problem: str


def check_log(home: Home, since: str | None = None) -> LogReport:
    """Follow the log.

    Args:
        home: Whose.
        since: A hash that an earlier report had as its newest one.
    """
    key = home.keys.find_node_key()
    judge = partial(is_signed, b"" if key is None else key.public_key())
    archives = home.store.list_archives()
    present = [each for each in archives if path_of(home.folder.audit, each.first, each.last).exists()]
    kept = _without_gap(archives, present)
    check = AuditChainCheck(judge, NO_CHAIN)
    if archives and len(kept) < len(archives):
        before = archives[len(archives) - len(kept) - 1]
        check.chain, check.number, check.newest = before.chain, before.last, before.chain
    first = check.number + 1
    is_since_found = since is None
    for archive in kept:
        try:
            for row in iter_archive(path_of(home.folder.audit, archive.first, archive.last)):
                check.follow(row)
                is_since_found = is_since_found or check.newest.hex() == since
        except MalformedError as error:
            check.problem = check.problem or str(error)
        if not check.problem and (check.number, check.chain) != (archive.last, archive.chain):
            check.problem = f"the archive of rows {archive.first} to {archive.last} ends otherwise"
    behind = archives[-1].last if archives else 0
    if not check.problem:
        check.problem = _find_changed(home, behind, judge)
    after = behind
    while not check.problem and (rows := home.store.list_audit_rows(after, _PORTION)):
        for row in rows:
            check.follow(row)
            is_since_found = is_since_found or check.newest.hex() == since
        after = rows[-1].id
    check.end()
    if not check.problem and not is_since_found:
        check.problem = "the hash that was named is not in it: rows were removed, or it is another log"
    return LogReport(rows=check.rows, archives=len(kept), first=first, newest=check.newest.hex(), problem=check.problem)


def _without_gap(archives: tuple[AuditArchive, ...], present: list[AuditArchive]) -> tuple[AuditArchive, ...]:
    """Give the newest archives up to the first that is not there: the oldest are removed by and by (AUDIT-10)."""
    kept: list[AuditArchive] = []
    for each in reversed(archives):
        if each not in present:
            break
        kept.insert(0, each)
    return tuple(kept)


def _find_changed(home: Home, last: int, judge: object) -> str:
    """Look at the records that stayed when what stood between them was archived: each has its own signature."""
    after = 0
    while rows := [each for each in home.store.list_audit_rows(after, _PORTION) if each.id <= last]:
        for row in rows:
            if row.record is not None and not _stands_alone(row, judge):
                return f"row {row.id} was changed, or is not signed by this node's key"
        after = rows[-1].id
    return ""


def _stands_alone(row: AuditRow, judge: object) -> bool:
    assert callable(judge)
    seal = row.seal
    return seal is not None and seal.chain == hash_row(seal.before, row) and bool(judge(row))
