"""Verify what this node holds, with the verifier that guards acceptance; what was verified is remembered.

A chain is verified piece by piece. After each piece that holds, its end is remembered, so a verification that was
stopped goes on there, and the next one costs what is new. Files of remembered blocks are still looked for; whoever
wants their bytes read again says so.

Source: clauses VERIFY-1 to VERIFY-8 in ``spec/extensions/verification.md``.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from odf_engines.errors import EngineError
from odf_node.acceptance.checked_chain import CheckedChain
from odf_node.acceptance.checked_rows import check_rows
from odf_node.acceptance.proofs import describe_missing_engines
from odf_node.acceptance.verification import (
    ReexecutionMismatchError,
    UnrepeatableQueryError,
    check_records,
    check_stored,
    describe_order,
    find_missing_inputs,
    reexecute_steps,
)
from odf_node.datasets.chains import find_partial, iter_decoded, load_view
from odf_node.datasets.changelogs import Changelogs
from odf_node.datasets.naming import select_datasets
from odf_node.datasets.presence import Presence
from odf_node.derive.reexecution import Replayer
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.keys.logs import KeyLogs
from odf_node.ports.progress import Count, OnProgress
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.evidence import Verified
from odf_node.wording import count_of
from odf_protocol import block_traits as traits
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.did import DatasetId
from odf_protocol.divergence import Cause, Divergence
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import CorruptError, NotFoundError, OdfError, RejectedError, UnavailableError
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.heads import verify_head
from odf_protocol.multihash import Multihash
from odf_protocol.transform_plan import input_ids

CHUNK_BLOCKS: Final = 256
"""Blocks after which a verification can be resumed.  # guess: seconds to minutes of work"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """How thoroughly.

    Attributes:
        replay: Re-execute derivatives.
        everything: Forget what was verified before.
        sample: Read so many slices, chosen at random, instead of all; None for all.
        random: Chooses them.
    """

    replay: bool = True
    everything: bool = False
    sample: int | None = None
    random: Random = field(default_factory=Random)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFinding:
    """What a verification found: what was checked, what could not be, and the first thing that is wrong.

    ``first`` and ``last`` are the blocks that this run looked at, those with the problem included, None where it got to
    none; ``is_damage`` says that the problem is what this node keeps, and no word of the publisher's,
    ``by_other_build`` that another build of the engine made the step (VERIFY-9).
    ``remembered`` is the number of blocks that were verified before and not again, ``remembered_head`` the last of
    them, where all of it was verified that can be, re-execution included. ``partial`` says what makes the dataset less
    than its declared query over the whole input (PLAN-10).
    """

    name: str
    dataset_id: DatasetId | None
    blocks: int
    rows: int
    signed: bool
    replayed_steps: int | None
    slices: int = 0
    slices_in_range: int = 0
    steps_in_range: int = 0
    remembered: int = 0
    remembered_head: Head | None = None
    first: Head | None = None
    last: Head | None = None
    not_checked: str = ""
    problem: str = ""
    is_damage: bool = False
    by_other_build: bool = False
    rule: str = ""
    problem_block: int | None = None
    divergence: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    partial: str = ""

    @property
    def is_valid(self) -> bool:
        """Nothing that was checked is wrong."""
        return not self.problem

    def describe(self) -> list[str]:
        """Say it in lines for people."""
        if self.problem:
            lines = [f"{self.name}: NOT VALID: {self.problem}"]
            if self.is_damage:
                reported = "the fault is in what is kept here, and says nothing of its publisher"
                lines.append(f"{self.name}: {reported} ('odf-node repair' fixes files)")
            if self.by_other_build:
                reported = "another build of the engine made this step; that the one here differs proves nothing"
                lines.append(f"{self.name}: {reported}")
            return lines
        checked = [count_of(self.blocks, "block")]
        if self.remembered == self.blocks > 0:
            checked.append("verified before ('--all' reads them again)")
        elif self.remembered:
            checked += [f"{self.remembered:,} of them verified before", f"{count_of(self.rows, 'row')} in the others"]
        else:
            checked.append(count_of(self.rows, "row"))
        if self.slices < self.slices_in_range:
            checked.append(f"a sample of {self.slices} of {self.slices_in_range} slices")
        checked.append("all signed by the dataset's key" if self.signed else "unsigned")
        if self.replayed_steps is not None:
            part = f" (partial: {self.partial})" if self.partial else ""
            checked.append(f"{count_of(self.replayed_steps, 'step')} re-executed with an equal result{part}")
        lines = [f"{self.name}: valid: {', '.join(checked)}"]
        if self.not_checked:
            lines.append(f"{self.name}: not re-executed: {self.not_checked}")
        return lines + [f"{self.name}: note: {warning}" for warning in self.warnings[:5]]

    def to_json(self) -> dict[str, Any]:
        """Give the finding as plain values."""
        return {
            "dataset": self.name,
            "id": str(self.dataset_id) if self.dataset_id else None,
            "valid": self.is_valid,
            "blocks": self.blocks,
            "rows": self.rows,
            "slices": self.slices,
            "slicesInRange": self.slices_in_range,
            "signed": self.signed,
            "replayedSteps": self.replayed_steps,
            "partial": self.partial or None,
            "rememberedBlocks": self.remembered,
            "notChecked": self.not_checked or None,
            "problem": self.problem or None,
            "problemBlock": self.problem_block,
            "damage": self.is_damage,
            "otherBuild": self.by_other_build,
            "rule": self.rule or None,
            "divergence": self.divergence,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Verifier:
    """The use case behind ``odf-node verify``."""

    home: Home
    engines: EngineHost

    def select(self, patterns: Sequence[str], *, recursive: bool) -> list[DatasetRecord]:
        """Find the datasets to verify; with ``recursive`` their inputs too, inputs first."""
        chosen: dict[DatasetId, DatasetRecord] = {}

        def visit(record: DatasetRecord) -> None:
            if recursive and record.kind is DatasetKind.DERIVATIVE:
                transform = load_view(self.home.store, record.id).transform
                for dataset_id in input_ids(transform) if transform else ():
                    source = self.home.store.find_dataset(dataset_id)
                    if source is not None and source.id not in chosen:
                        visit(source)
            chosen.setdefault(record.id, record)

        for record in select_datasets(self.home.store, patterns):
            visit(record)
        return list(chosen.values())

    def verify(
        self,
        record: DatasetRecord,
        *,
        on_progress: OnProgress,
        replay: bool = True,
        options: VerifyOptions | None = None,
    ) -> VerificationFinding:
        """Check one dataset from its raw bytes on; a problem is a finding, not an error.

        Args:
            record: Which.
            on_progress: Hears how far it is.
            replay: Re-execute derivatives, where ``options`` are not given.
            options: How thoroughly; None: everything anew.

        Raises:
            ObjectsAbsentError: Not all of its files are here.
            EngineError: The engine failed for reasons that say nothing about the dataset.
        """
        options = options or VerifyOptions(replay=replay, everything=True)
        Presence(self.home.store, self.home.objects).require(record)
        signed_head = self.home.store.find_signed_head(record.id)
        # What began without signatures may have gained a signed head since; its first blocks stay unsigned.
        signed = signed_head is not None and (record.origin is Origin.OWN or record.pinned_key is not None)
        is_derivative = record.kind is DatasetKind.DERIVATIVE
        known = None if options.everything else self._recall(record, replay=options.replay and is_derivative)
        after = -1 if known is None else known.head.sequence_number
        finding = VerificationFinding(
            name=record.name,
            dataset_id=record.id,
            blocks=record.head.sequence_number + 1,
            rows=0,
            signed=signed,
            replayed_steps=None,
            remembered=after + 1,
            remembered_head=known.head if known is not None and known.replayed else None,
            partial=find_partial(self.home.store, record),
        )
        chain: CheckedChain | None = None
        try:
            keys = KeyLogs(self.home.store).get_history(record.id)
            if signed_head is not None:
                verify_head(signed_head.raw, record.id, keys=keys)
            if known is not None:
                self._look_for_files(record, after)
            state = None if known is None else decode_state(known.chain_state)
            while after < record.head.sequence_number:
                upto = min(after + CHUNK_BLOCKS, record.head.sequence_number)
                chain = None
                chain = check_stored(self.home.store, record, keys=keys, signed=signed, state=state, upto=upto)
                finding = self._check_chunk(record, chain, finding, options, on_progress)
                state, after = chain.state, upto
                if options.sample is None:
                    self._remember(record, chain, replayed=not is_derivative or finding.replayed_steps is not None)
        except (EngineError, UnavailableError):
            raise  # which says nothing about the data
        except OdfError as error:
            return replace(
                finding if chain is None else _with_range(finding, chain),
                problem=str(error),
                # Blocks that are no chain were one when they were taken; what a file lacks, its hash says.
                is_damage=chain is None or isinstance(error, CorruptError | NotFoundError),
                by_other_build=isinstance(error, ReexecutionMismatchError | UnrepeatableQueryError)
                and error.by_other_build,
                rule=getattr(error, "rule", type(error).__name__),
                problem_block=getattr(error, "sequence_number", None),
                divergence=_divergence_of(error),
            )
        return finding

    def _recall(self, record: DatasetRecord, *, replay: bool) -> Verified | None:
        known = self.home.store.find_verified(record.id)
        if known is None or (replay and not known.replayed):
            return None
        held = self.home.store.find_block_by_number(record.id, known.head.sequence_number)
        return known if held is not None and held.hash == known.head.hash else None

    def _remember(self, record: DatasetRecord, chain: CheckedChain, *, replayed: bool) -> None:
        # It saves time alone: where there is no room for it, all is looked at again the next time.
        with suppress(UnavailableError):
            self.home.store.put_verified(
                Verified(record.id, chain.last, replayed, encode_state(chain.state), self.home.clock.now())
            )

    def _look_for_files(self, record: DatasetRecord, upto: int) -> None:
        """Check that the files of remembered blocks are there with their size; their bytes were read before."""
        for block in iter_decoded(self.home.store, record.id, upto=upto):
            if isinstance(block.event, AddData | ExecuteTransform):
                for part in (block.event.new_data, block.event.new_checkpoint):
                    if part is not None:
                        self._require_size(part.physical_hash, part.size)

    def _require_size(self, object_hash: Multihash, size_bytes: int) -> None:
        found = self.home.objects.get_size(object_hash)
        if found != size_bytes:
            raise RejectedError("EX-OBJECT object-is-what-its-block-says", expected=size_bytes, found=found)

    def _check_chunk(
        self,
        record: DatasetRecord,
        chain: CheckedChain,
        before: VerificationFinding,
        options: VerifyOptions,
        on_progress: OnProgress,
    ) -> VerificationFinding:
        paths, done_bytes = {}, 0
        for needed in chain.needed_objects():
            on_progress("checking files", Count(done_bytes, None, "B"))
            done_bytes += needed.size_bytes
            self.home.objects.check(needed.hash)
            self._require_size(needed.hash, needed.size_bytes)
            paths[needed.hash] = self.home.objects.get_path(needed.hash)
        data = [block.sequence_number for block in chain.iter_blocks(traits.ROWS)]
        chosen = data if options.sample is None else sorted(options.random.sample(data, min(options.sample, len(data))))
        # Of a piece nobody knows what the others hold.
        is_all = before.first is None and chain.last == record.head
        changelogs = (
            Changelogs(self.home.store, self.home.objects, self.engines.rows) if options.sample is None else None
        )
        checked = check_rows(
            chain,
            paths,
            on_progress,
            chosen=frozenset(chosen),
            whole=None if is_all and options.sample is None else Count(before.rows, None, "rows"),
            changelogs=changelogs,
        )
        steps = chain.count(traits.STEP)
        replayed, not_checked, divergence = before.replayed_steps, before.not_checked, before.divergence
        engine_notes: list[str] = []
        if record.kind is DatasetKind.DERIVATIVE:
            missing = find_missing_inputs(chain, self.home.store)
            divergence = _missing_inputs(missing).to_json() if missing else divergence
            not_checked = self._obstacle(chain, options, missing)
            # As those that come with an offer (REPLAY-12).
            replayer = Replayer(self.home.store, self.home.objects, self.engines.rows, paths)
            # Re-execution looks at inputs anyway.
            with_inputs = bool(not_checked) and not missing
            engine_notes = check_records(chain, replayer, self.engines, with_inputs=with_inputs).describe()
            if not not_checked:
                done = reexecute_steps(
                    chain,
                    replayer,
                    self.engines,
                    on_progress,
                    # What stands before was re-executed by this run, or by the one that is remembered.
                    known_before=before.replayed_steps is not None or before.remembered_head is not None,
                    whole=None if is_all else Count(before.replayed_steps or 0, None, "steps"),
                )
                replayed = (replayed or 0) + done
                if unproved := describe_order(replayer):
                    engine_notes.append(unproved)
        checked.require_sound()
        return replace(
            before,
            rows=before.rows + checked.rows,
            slices=before.slices + len(chosen),
            slices_in_range=before.slices_in_range + len(data),
            steps_in_range=before.steps_in_range + steps,
            replayed_steps=replayed,
            not_checked=not_checked,
            divergence=divergence,
            first=before.first or chain.first,
            last=chain.last,
            partial=chain.state.coverage.describe(),
            warnings=(*before.warnings, *checked.notes, *engine_notes, *chain.warnings),
        )

    def _obstacle(self, chain: CheckedChain, options: VerifyOptions, missing: Sequence[str]) -> str:
        if not options.replay:
            return "not asked for"
        if options.sample is not None:
            return "a sample reads rows only"
        if chain.view.transform is None:
            return "it declares no transform"
        return "; ".join(describe_missing_engines(chain, self.engines)[:1] or missing)


def _with_range(finding: VerificationFinding, chain: CheckedChain) -> VerificationFinding:
    """Add the piece with the problem to what was looked at: there is this much in it, and nothing of it counts."""
    return replace(
        finding,
        slices_in_range=finding.slices_in_range + chain.count(traits.ROWS),
        steps_in_range=finding.steps_in_range + chain.count(traits.STEP),
        first=finding.first or chain.first,
        last=chain.last,
    )


def _divergence_of(error: OdfError) -> dict[str, Any] | None:
    if isinstance(error, ReexecutionMismatchError):
        return error.mismatch.divergence.to_json()
    if isinstance(error, RejectedError) and error.rule.startswith("REPLAY-7 slices"):
        return _missing_inputs([str(error)]).to_json()
    return None


def _missing_inputs(missing: Sequence[str]) -> Divergence:
    return Divergence("inputs", (), 0, 0, 0, (), "; ".join(missing), Cause.MISSING_INPUT)
