"""Engines of this node by name, and by digest where there are several of one name.

A *build* is written as transforms write it, ``NAME``, or as ``NAME@DIGEST`` where it is another one than the default:
the one that is installed, else the one that was added last. No transform names a digest.

Source: clauses ENGINE-2, ADDED-18 and ADDED-19 in ``spec/extensions``.
"""

from collections.abc import Callable

from odf_engines.engine import Engine
from odf_engines.errors import EngineMissingError
from odf_engines.registry import find_remedy, get_engine, installed_engines
from odf_node.engines.files import find_adding
from odf_node.ports.engines import DamagedEngine, EngineFiles, ShelvedEngine, split_build
from odf_node.records.errors import HomeCorruptError
from odf_protocol.errors import MalformedError
from odf_protocol.events import TransformSql
from odf_protocol.multihash import Multihash


def get_engine_here(build: str, engine_files: EngineFiles | None) -> Engine:
    """Return an engine, whatever case its name is written in.

    Args:
        build: ``NAME`` or ``NAME@DIGEST``.
        engine_files: Has the engines that the operator added.

    Raises:
        EngineMissingError: There is none; the message names it and those that are there.
        HomeCorruptError: One that was added, and may be the one that is meant, cannot be read.
    """
    try:
        name, digest = split_build(build)
    except MalformedError:
        raise EngineMissingError(build, installed_engines()) from None
    if is_installed(name):
        engine = get_engine(name)
        if not digest or str(engine.digest()).endswith(digest):
            return engine
    added = () if engine_files is None else engine_files.find(name)
    damaged = next((each for each in added if isinstance(each, DamagedEngine)), None)
    if digest or damaged is None:  # else it may be the one that is meant
        for each in added:
            if isinstance(each, ShelvedEngine) and each.fits(digest):
                return each.engine
    if damaged is not None:
        raise HomeCorruptError(damaged.place, damaged.describe())
    others = () if engine_files is None else tuple(dict.fromkeys(each.name for each in engine_files.list()))
    remedy = "" if digest else find_remedy(name) or find_adding(name)
    raise EngineMissingError(build, (*installed_engines(), *others), remedy=remedy)


def choose_build(
    transform: TransformSql,
    made_by: Multihash | None,
    engine_files: EngineFiles | None,
    digest_of: Callable[[str], Multihash] = lambda name: get_engine(name).digest(),
) -> str:
    """Say which build computes a step: the one that its record names, else of the version that the query states.

    Args:
        transform: The query in force, which names the engine.
        made_by: The digest that the record of the step names, None where it has none, or for a new step.
        engine_files: Has the engines that the operator added.
        digest_of: Gives the digest of an engine that is installed.

    Raises:
        EngineMissingError: It is no name of an engine.
    """
    name = transform.engine
    if "@" in name:
        raise EngineMissingError(name, installed_engines())
    added = [
        each for each in (() if engine_files is None else engine_files.find(name)) if isinstance(each, ShelvedEngine)
    ]
    if not added or (len(added) == 1 and not is_installed(name)):
        return name  # nothing to choose from, so no digest is needed
    if made_by is not None:
        if is_installed(name) and digest_of(name) == made_by:
            return name
        for each in added:
            if each.digest == str(made_by):
                return each.build
    if transform.version is not None and not (is_installed(name) and get_engine(name).version == transform.version):
        for each in added:
            if each.engine.version == transform.version:
                return each.build
    return name


def is_installed(name: str) -> bool:
    """Say whether a build is the one that is installed with this program; others come from a file."""
    return name.lower() in {each.lower() for each in installed_engines()}
