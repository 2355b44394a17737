"""What is known of a checked chain before a policy is asked: who signed, what can be re-executed, who attests."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from odf_engines.errors import EngineMissingError
from odf_node.acceptance.checked_chain import CheckedChain
from odf_node.acceptance.verification import find_missing_inputs
from odf_node.engines.sessions import EngineHost
from odf_node.ports.access import READS_EVERYTHING, ReadGrants
from odf_node.ports.chains import ChainStore
from odf_node.ports.object_names import ObjectNames
from odf_protocol import block_traits as traits
from odf_protocol.enums import DatasetKind
from odf_protocol.multihash import Multihash
from odf_protocol.policy import EngineHere, Proof, Witness

_MOST_DIGESTS: Final = 5  # guess: as many as people read


def gather_proof(
    chain: CheckedChain,
    chains: ChainStore,
    object_names: ObjectNames,
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
        chains: The inputs that are accepted here.
        object_names: Which files they have.
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
    inputs_missing = find_missing_inputs(chain, chains, object_names, reads)
    return replace(
        proof,
        engine_available=not engines_missing,
        inputs_accepted=not inputs_missing,
        missing="; ".join(engines_missing + inputs_missing),
        engines=tuple(_engine_here(name, engines) for name in chain.list_engines()) if with_digests else (),
    )


def _engine_here(name: str, engines: EngineHost) -> EngineHere:
    try:
        return EngineHere(name.lower(), str(engines.get_engine(name).digest()))
    except EngineMissingError:
        return EngineHere(name.lower(), "")


def describe_missing_engines(chain: CheckedChain, engines: EngineHost) -> list[str]:
    """Say which engines the steps need that are not here, and by which digests the steps were made (ADDED-10)."""
    missing: dict[str, str] = {}
    for name in chain.list_engines():
        try:
            engines.get_engine(name)
        except EngineMissingError as error:
            missing[name.lower()] = str(error)
    if not missing:
        return []
    wanted: dict[str, dict[Multihash, None]] = {name: {} for name in missing}
    for step in chain.iter_steps(traits.STEP):
        if step.record is not None and (name := step.record.engine.name.lower()) in wanted:
            wanted[name].setdefault(step.record.engine.digest)
    return [f"{said}{_describe_wanted(wanted[name])}" for name, said in missing.items()]


def _describe_wanted(digests: Mapping[Multihash, None]) -> str:
    if not digests:
        return ""
    shown = [str(each) for each in digests][:_MOST_DIGESTS]
    more = f" and {len(digests) - len(shown)} more" if len(digests) > len(shown) else ""
    return f"; its steps were made by the one with digest {' or '.join(shown)}{more}"
