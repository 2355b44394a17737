"""Ingests that are asked for once: what is asked under a key, and its first answer again.

Source: clauses FEED-1 to FEED-3 in ``spec/pushed-rows.md``; draft-ietf-httpapi-idempotency-key-header-06.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from odf_engines.contract import QuarantineReason
from odf_node.errors import UsageError
from odf_node.ingest.report import IngestReport
from odf_node.records.datasets import DatasetRecord
from odf_node.records.ingests import IngestKey, KeptAnswer, KeyReusedError
from odf_node.row_counts import RowCounts
from odf_node.store import MetadataStore
from odf_protocol.head import Head

MAX_KEY_CHARACTERS: Final = 255  # guess: a UUID has 36; the draft leaves it to us


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of a report is kept."""

    new_blocks: int
    new_rows: int
    counts: RowCounts | None = None
    quarantine_reasons: tuple[QuarantineReason, ...] = ()
    warnings: tuple[QuarantineReason, ...] = ()


def check_key(text: str) -> str:
    """Return a key as it is.

    Raises:
        UsageError: It is empty, too long, or not of ASCII letters, digits, signs and spaces.
    """
    if not 0 < len(text) <= MAX_KEY_CHARACTERS or not (text.isascii() and text.isprintable()):
        raise UsageError(f"a key has 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    return text


def key_for(caller: str, text: str, path: Path, asked: Mapping[str, str | None]) -> IngestKey:
    """Say what is asked under a key.

    Args:
        caller: See ``IngestKey``.
        text: The key.
        path: The bytes that were sent.
        asked: By name, what else the answer follows from.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha3_256").digest()
    whole = hashlib.sha3_256(msgspec.json.encode([sorted(asked.items()), digest.hex()])).digest()
    return IngestKey(caller=caller, text=check_key(text), asked=whole)


def find_repeated(store: MetadataStore, record: DatasetRecord, key: IngestKey) -> IngestReport | None:
    """Give the first answer under the key again; None: nothing was answered yet.

    Raises:
        KeyReusedError: Something else was asked.
    """
    kept = store.find_answer(record.id, key.caller, key.text)
    if kept is None:
        return None
    if kept.key.asked != key.asked:
        raise KeyReusedError(key.text)
    answer = msgspec.json.decode(kept.text, type=_Answer)
    block = store.find_block_by_number(record.id, kept.sequence_number)
    head = record.head if block is None else Head(block.sequence_number, block.hash)
    values: dict[str, Any] = {name: getattr(answer, name) for name in answer.__struct_fields__}
    # Answers of before rows were counted by what became of them.
    values["counts"] = answer.counts or RowCounts(added=answer.new_rows, unchanged=None)
    return IngestReport(
        replace(record, head=head),
        up_to_date=not answer.new_blocks,
        is_repeated=True,
        **values,
    )


def answer_of(key: IngestKey, report: IngestReport, sequence_number: int) -> KeptAnswer:
    """Say what to keep of a report; ``sequence_number`` is that of the dataset's newest block behind it."""
    values = {name: getattr(report, name) for name in _Answer.__struct_fields__}
    text = msgspec.json.encode(_Answer(**values)).decode()
    return KeptAnswer(key=key, sequence_number=sequence_number, text=text)
