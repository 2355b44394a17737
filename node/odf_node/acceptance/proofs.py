"""What is known of a checked chain before a policy is asked: who signed, what can be re-executed, who attests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from odf_engines.errors import EngineMissingError
from odf_node.acceptance.checked_chain import ChainStep, CheckedChain
from odf_node.acceptance.verification import find_missing_inputs
from odf_node.engines.sessions import EngineHost
from odf_node.records.access import READS_EVERYTHING, ReadGrants
from odf_node.store import MetadataStore
from odf_protocol import block_traits as traits
from odf_protocol.block import Block
from odf_protocol.enums import DatasetKind
from odf_protocol.events import TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.policy import EngineHere, Proof, Witness

_MAX_DIGESTS: Final = 5  # guess: as many as people read


def gather_proof(
    chain: CheckedChain,
    store: MetadataStore,
    engines: EngineHost,
    *,
    signed: bool,
    witnesses: tuple[Witness, ...],
    reads: ReadGrants = READS_EVERYTHING,
    with_digests: bool = False,
) -> Proof:
    """Say what there is to decide on.

    Args:
        chain: The blocks in question.
        store: What the home keeps.
        engines: Knows the engines of this machine.
        signed: Whether the dataset's key signed the blocks.
        witnesses: Who attests them.
        reads: Which inputs may be used for whoever offers the chain.
        with_digests: Whether the rule in force counts some engines only.

    Raises:
        EngineFailureError: With digests: an added engine is not what was added.
    """
    coverage = chain.state.coverage
    proof = Proof(
        kind=chain.view.kind,
        signed=signed,
        witnesses=witnesses,
        lapses=coverage.describe_lapses(since=chain.first.sequence_number),
        is_late=coverage.is_late,
        partial=coverage.describe(),
    )
    if chain.view.kind is DatasetKind.ROOT or chain.view.transform is None:
        return proof
    engines_missing = describe_missing_engines(chain, engines)
    inputs_missing = find_missing_inputs(chain, store, reads)
    return replace(
        proof,
        engine_available=not engines_missing,
        inputs_accepted=not inputs_missing,
        missing="; ".join(engines_missing + inputs_missing),
        engines=tuple(_engine_here(each, engines) for each in list_builds(chain, engines)) if with_digests else (),
    )


def list_builds(chain: CheckedChain, engines: EngineHost) -> list[str]:
    """List the builds that compute the steps here, and the one that would compute the next (ADDED-19)."""
    names = chain.list_engines()
    if not any(map(engines.has_several, names)):
        return [name for name in names if "@" not in name]  # of the others it is said that they are missing
    used: dict[str, None] = {}
    for step in chain.iter_steps(traits.STEP):
        if (build := _choose(step, engines)) is not None:
            used[build] = None
    if not used and chain.view.transform is not None:
        used[engines.choose_build(chain.view.transform.transform)] = None
    return list(used)


def iter_steps_of(chain: CheckedChain, build: str, engines: EngineHost) -> Iterator[Block]:
    """Yield the steps that a build computes here."""
    if len(list_builds(chain, engines)) == 1:
        yield from chain.iter_blocks(traits.STEP)
        return
    for step in chain.iter_steps(traits.STEP):
        if _choose(step, engines) == build:
            yield step.block


def _choose(step: ChainStep, engines: EngineHost) -> str | None:
    if step.before is None or step.before.transform is None:
        return None
    made_by = None if step.record is None else step.record.engine.digest
    return engines.choose_build(step.before.transform.transform, made_by)


def _engine_here(build: str, engines: EngineHost) -> EngineHere:
    name = build.partition("@")[0].lower()
    try:
        return EngineHere(name, str(engines.get_digest(build)))
    except EngineMissingError:
        return EngineHere(name, "")


def describe_missing_engines(chain: CheckedChain, engines: EngineHost) -> list[str]:
    """Say which engines the steps need that are not here, and by which digests the steps were made (ADDED-10)."""
    missing: dict[str, str] = {}
    for name in chain.list_engines():
        try:
            engines.get_engine(engines.choose_build(TransformSql(engine=name)))
        except EngineMissingError as error:
            missing[name.lower()] = str(error)
    if not missing:
        return []
    wanted: dict[str, dict[Multihash, None]] = {name: {} for name in missing}
    for step in chain.iter_steps(traits.STEP):
        if step.record is not None and (name := step.record.engine.name.lower()) in wanted:
            wanted[name].setdefault(step.record.engine.digest)
    return [f"{stated}{_describe_wanted(wanted[name])}" for name, stated in missing.items()]


def _describe_wanted(digests: Mapping[Multihash, None]) -> str:
    if not digests:
        return ""
    shown = [str(each) for each in digests][:_MAX_DIGESTS]
    more = f" and {len(digests) - len(shown)} more" if len(digests) > len(shown) else ""
    return f"; its steps were made by the one with digest {' or '.join(shown)}{more}"
