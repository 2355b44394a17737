"""What of somebody else's dataset nobody looked at when it was accepted: files, rows, steps.

Source: clauses PART-2, PART-12 and PART-14 in ``spec/extensions/partial-clones.md``.
"""

from dataclasses import dataclass
from typing import Final

from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.enums import DatasetKind
from odf_protocol.policy import Trust

FILES: Final = "files"
ROWS: Final = "rows"
STEPS: Final = "re-execution"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """``after``: the block after which blocks rest on metadata alone (-1: all); ``what`` was left out of them."""

    after: int
    what: tuple[str, ...]

    @property
    def has_files(self) -> bool:
        """The files of all of these blocks were here, with the right hashes."""
        return FILES not in self.what


def find_unchecked(store: MetadataStore, record: DatasetRecord) -> Unchecked | None:
    """Say what no acceptance of a dataset has looked at; None: nothing was left out."""
    if record.trust is not Trust.METADATA:
        return None
    after: dict[str, int] = {}
    for acceptance in store.iter_acceptances(record.id):
        before = acceptance.grounds.first - 1
        for what in (FILES, ROWS, STEPS):
            if what in acceptance.grounds.not_checked:
                after.setdefault(what, before)
            elif what in after and before <= after[what]:
                del after[what]
    if not after:
        # A history that replaced another may leave no acceptance; then everything is looked at.
        return Unchecked(-1, list_unchecked(record.kind, has_files=False))
    return Unchecked(min(after.values()), tuple(after))


def list_unchecked(kind: DatasetKind, *, has_files: bool) -> tuple[str, ...]:
    """List what is left out where no row is read; only derivatives have steps to run again."""
    steps = (STEPS,) if kind is DatasetKind.DERIVATIVE else ()
    return (ROWS, *steps) if has_files else (FILES, ROWS, *steps)
