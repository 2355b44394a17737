"""Comparing what other nodes stated of versions with the rows of these versions.

Source: clause FP-13 in ``spec/plug-ins/fingerprints.md``.
"""

from typing import Any, Final

from odf_fingerprints.documents import Fingerprint, RowsFingerprint
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.signing import SignedFingerprint, decode_signed
from odf_node.acceptance.offers import Proposal
from odf_node.cli.context import CommandContext
from odf_node.composition import Node
from odf_node.records.datasets import DatasetRecord
from odf_node.wording import count_of
from odf_protocol.multihash import Multihash

DOCUMENT_FILE: Final = "fingerprint.signed"
"""The signed fingerprint beside the report of a rejection."""
MAX_REASON: Final = 1_000  # guess: names of columns are as long
_PACKED: Final = frozenset({"packed", "sketch", "lengths"})


def report_false(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> bool:
    """Check all that other nodes stated, keep what is false as evidence, and report it.

    Returns:
        Whether any is false.
    """
    home = context.node.home
    checked, absent = 0, 0
    found: list[dict[str, Any]] = []
    with FingerprintMaker(home) as maker:
        for compared in maker.iter_compared(record):
            checked, absent = checked + (compared.found is not None), absent + (compared.found is None)
            if compared.found is None or not compared.is_false:
                continue
            stated = decode_signed(compared.stated)
            difference = find_difference(stated.fingerprint, compared.found)
            _keep(context.node, record, stated, compared.stated, difference)
            found.append({"version": compared.found.sequence, "signer": str(stated.signer), "difference": difference})
    if as_json:
        context.console.json({"dataset": record.name, "checked": checked, "absent": absent, "false": found})
        return bool(found)
    headings = {"version": ">VERSION", "signer": "SIGNER", "difference": "WHAT DIFFERS"}
    context.console.table(found, headings, is_whole=True)
    beside = f"; {count_of(absent, 'version')} without rows here not checked" if absent else ""
    context.console.note(f"{count_of(checked, 'fingerprint')} of other nodes checked, {len(found)} false{beside}")
    return bool(found)


def _keep(node: Node, record: DatasetRecord, stated: SignedFingerprint, document: bytes, difference: str) -> None:
    """Keep a fingerprint that the rows do not give, which its signer cannot deny, as evidence of a rejection."""
    node.home.audit.note("fingerprint", str(record.id), f"false: {stated.signer}, {difference}"[:1_000])
    source = record.origin_url or str(record.id)
    offered = Proposal(name=record.name, source_url=source, base=None, blocks=(), signed_head=None)
    node.refusals.keep(
        rule="FP-13 same-figures",
        reason=f"{stated.signer} stated what the rows do not give: {difference}"[:MAX_REASON],
        sequence_number=stated.fingerprint.sequence,
        proposal=offered,
        files={},
        documents={DOCUMENT_FILE: document},
        report={"signer": str(stated.signer), "statement": str(Multihash.of_sha3_256(document))},
        now=node.clock.now(),
    )


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
                values = "" if name in _PACKED else f": stated {getattr(one, name)}, found {getattr(other, name)}"
                return f"column {one.name}, {name}{values}"
    return ""
