"""Verify what this node holds, with the verifier that guards acceptance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from odf_engines.errors import EngineError, EngineMissingError
from odf_node.ports import DatasetRecord, MetadataStore, ObjectStore, Origin
from odf_node.services.chains import load_view
from odf_node.services.engines import EngineHost
from odf_node.services.naming import select_datasets
from odf_node.services.transforms import input_ids
from odf_node.services.verification import (
    CheckedChain,
    ReplayMismatchError,
    check_chain,
    check_records,
    check_rows,
    find_missing_inputs,
    replay_steps,
    stored_chain,
)
from odf_protocol.chain import Strictness
from odf_protocol.did import DatasetId
from odf_protocol.divergence import Divergence
from odf_protocol.divergence_cause import Cause
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.heads import verify_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a verification found: what was checked, what could not be, and the first thing that is wrong."""

    name: str
    blocks: int
    rows: int
    signed: bool
    replayed_steps: int | None
    not_checked: str = ""
    problem: str = ""
    rule: str = ""
    divergence: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Nothing that was checked is wrong."""
        return not self.problem

    def describe(self) -> list[str]:
        """Say it in lines for people."""
        if self.problem:
            return [f"{self.name}: NOT VALID: {self.problem}"]
        checked = [f"{self.blocks} blocks", f"{self.rows:,} rows"]
        checked.append("all signed by the dataset's key" if self.signed else "signed by nobody")
        if self.replayed_steps is not None:
            checked.append(f"{self.replayed_steps} steps re-executed with an equal result")
        lines = [f"{self.name}: valid: {', '.join(checked)}"]
        if self.not_checked:
            lines.append(f"{self.name}: not re-executed: {self.not_checked}")
        return lines + [f"{self.name}: note: {warning}" for warning in self.warnings[:5]]

    def to_json(self) -> dict[str, Any]:
        """Give the finding as plain values."""
        return {
            "dataset": self.name,
            "valid": self.is_valid,
            "blocks": self.blocks,
            "rows": self.rows,
            "signed": self.signed,
            "replayedSteps": self.replayed_steps,
            "notChecked": self.not_checked or None,
            "problem": self.problem or None,
            "rule": self.rule or None,
            "divergence": self.divergence,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Verifier:
    """The use case behind ``odf-node verify``."""

    store: MetadataStore
    objects: ObjectStore
    engines: EngineHost

    def select(self, patterns: Sequence[str], *, recursive: bool) -> list[DatasetRecord]:
        """Find the datasets to verify; with ``recursive`` their inputs too, inputs first."""
        chosen: dict[DatasetId, DatasetRecord] = {}

        def visit(record: DatasetRecord) -> None:
            if recursive and record.kind is DatasetKind.DERIVATIVE:
                transform = load_view(self.store, record.id).transform
                for dataset_id in input_ids(transform) if transform else ():
                    source = self.store.find_dataset(dataset_id)
                    if source is not None and source.id not in chosen:
                        visit(source)
            chosen.setdefault(record.id, record)

        for record in select_datasets(self.store, patterns):
            visit(record)
        return list(chosen.values())

    def verify(self, record: DatasetRecord, *, replay: bool, say: Callable[[str], None]) -> Finding:
        """Check one dataset from its raw bytes on; a problem is a finding, not an error.

        Raises:
            EngineError: The engine failed for reasons that say nothing about the dataset.
        """
        signed_head = self.store.find_signed_head(record.id)
        # What began without signatures may have gained a signed head since; its first blocks stay unsigned.
        signed = signed_head is not None and (record.origin is Origin.OWN or record.pinned_key is not None)
        blocks = record.head.sequence_number + 1
        try:
            if signed_head is not None:
                verify_head(signed_head.raw, record.id)
            chain = check_chain(
                stored_chain(self.store, record),
                dataset_id=record.id,
                state=None,
                before=None,
                signed=signed,
                strictness=Strictness.FOREIGN,
            )
            paths = {}
            for needed in chain.needed_objects():
                say(f"checking file {needed.hash.short}")
                self.objects.check(needed.hash)
                if self.objects.get_size(needed.hash) != needed.size_bytes:
                    raise RejectedError(
                        "EX-OBJECT object-is-what-its-block-says",
                        expected=needed.size_bytes,
                        found=self.objects.get_size(needed.hash),
                    )
                paths[needed.hash] = self.objects.get_path(needed.hash)
            check_rows(chain, paths, say)
            replayed, not_checked = None, ""
            divergence: Divergence | None = None
            engine_notes: list[str] = []
            if record.kind is DatasetKind.DERIVATIVE:
                missing = find_missing_inputs(chain, self.store)
                divergence = _missing_inputs(missing) if missing else None
                not_checked = self._obstacle(chain, missing) if replay else "not asked for"
                engine_notes = check_records(
                    chain,
                    paths,
                    store=self.store,
                    objects=self.objects,
                    engines=self.engines,
                    # Re-execution looks at them anyway.
                    with_inputs=bool(not_checked) and not missing,
                ).describe()
                if not not_checked:
                    replayed = replay_steps(
                        chain, paths, store=self.store, objects=self.objects, engines=self.engines, say=say
                    )
        except EngineError:
            raise
        except OdfError as error:
            return Finding(
                name=record.name,
                blocks=blocks,
                rows=0,
                signed=signed,
                replayed_steps=None,
                problem=str(error),
                rule=getattr(error, "rule", type(error).__name__),
                divergence=_divergence_of(error),
            )
        return Finding(
            name=record.name,
            blocks=blocks,
            rows=chain.count_rows(),
            signed=signed,
            replayed_steps=replayed,
            not_checked=not_checked,
            divergence=None if divergence is None else divergence.to_json(),
            warnings=(*engine_notes, *chain.warnings),
        )

    def _obstacle(self, chain: CheckedChain, missing: Sequence[str]) -> str:
        if chain.view.transform is None:
            return "it declares no transform"
        for name in chain.list_engines():
            try:
                self.engines.get_engine(name)
            except EngineMissingError as error:
                return str(error)
        return "; ".join(missing)


def _divergence_of(error: OdfError) -> dict[str, Any] | None:
    if isinstance(error, ReplayMismatchError):
        return error.mismatch.divergence.to_json()
    if isinstance(error, RejectedError) and error.rule.startswith("REPLAY-7 slices"):
        return _missing_inputs([str(error)]).to_json()
    return None


def _missing_inputs(missing: Sequence[str]) -> Divergence:
    return Divergence("inputs", (), 0, 0, 0, (), "; ".join(missing), Cause.MISSING_INPUT)
