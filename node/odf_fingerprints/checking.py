"""Comparing what other nodes stated of versions with the rows of these versions.

Source: clause FP-13 in ``spec/plug-ins/fingerprints.md``.
"""

from typing import Final

from odf_fingerprints.documents import Fingerprint, RowsFingerprint
from odf_fingerprints.kept import KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.signing import decode_signed
from odf_node.cli.context import CommandContext
from odf_node.records.datasets import DatasetRecord
from odf_node.wording import count_of

_PACKED: Final = frozenset({"packed", "sketch", "lengths"})


def report_false(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> bool:
    """Check all that other nodes stated, keep what is false as evidence, and report it.

    Returns:
        Whether any is false.
    """
    home = context.node.home
    kept = KeptFingerprints(home.folder)
    found = []
    with FingerprintMaker(home) as maker:
        checked, false = maker.check(record)
    for each in false:
        stated = decode_signed(each.stated)
        difference = find_difference(stated.fingerprint, each.found)
        kept.disprove(record.id, each.stated, difference)
        home.audit.note("fingerprint", str(record.id), f"false: {stated.signer}, {difference}"[:1_000])
        found.append({"version": each.found.sequence, "signer": str(stated.signer), "difference": difference})
    if as_json:
        context.console.json({"dataset": record.name, "checked": checked, "false": found})
        return bool(found)
    headings = {"version": ">VERSION", "signer": "SIGNER", "difference": "WHAT DIFFERS"}
    context.console.table(found, headings, is_whole=True)
    context.console.note(f"{count_of(checked, 'fingerprint')} of other nodes checked, {len(found)} false")
    return bool(found)


def find_difference(stated: Fingerprint, found: Fingerprint) -> str:
    """Name the first figure that differs, with what was stated and what the rows give."""
    for name in ("system_time", "operations"):
        if getattr(stated, name) != getattr(found, name):
            return f"{name}: stated {getattr(stated, name)}, found {getattr(found, name)}"
    for side in ("added", "removed"):
        difference = _find_in_rows(getattr(stated, side), getattr(found, side))
        if difference:
            return f"{side}: {difference}"
    return "dataset or block"


def _find_in_rows(stated: RowsFingerprint, found: RowsFingerprint) -> str:
    for name in ("rows", "days", "delay"):
        if getattr(stated, name) != getattr(found, name):
            return name if name != "rows" else f"rows: stated {stated.rows}, found {found.rows}"
    if [each.name for each in stated.columns] != [each.name for each in found.columns]:
        return "names of columns"
    for one, other in zip(stated.columns, found.columns, strict=True):
        for name in one.__struct_fields__:
            if getattr(one, name) != getattr(other, name):
                values = (
                    ""
                    if name in {"packed", "sketch", "lengths"}
                    else f": stated {getattr(one, name)}, found {getattr(other, name)}"
                )
                return f"column {one.name}, {name}{values}"
    return ""
