"""Kinds of sources: which one a step is of, and what can never be fetched or prepared here.

The core's kinds stand here; those of plug-ins are entry points of the group ``odf_node.sources``.

Source: clause ING-18 in ``spec/ingest.md``; clauses SRC-1 and SRC-2 in ``spec/plug-ins/sources.md``.
"""

import re
from typing import Final

from odf_node.plug_ins import load_plug_ins
from odf_node.ports.sources import DATASET_SCHEME
from odf_node.sources.archives import ArchiveStep
from odf_node.sources.checks import TEMPLATE
from odf_node.sources.contract import PrepareKind, SourceKind, SourceSettings, SourceStep
from odf_node.sources.files import FileSource
from odf_node.sources.url import WebSource, show_url
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStep, FetchStepFilesGlob, FetchStepUrl, PrepStep
from odf_protocol.manifest.errors import At

GROUP: Final = "odf_node.sources"
"""Entry points of kinds: name and an instance."""

_BROUGHT_BY: Final = {"Container": "odf_foreign", "Mqtt": "odf_sources"}
"""Plug-ins of this wheel by the steps that none but they fetch, for a copy of the program without them."""

_FILES: Final = FileSource()
_CORE: Final = (WebSource(), _FILES, ArchiveStep())
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def find_source(step: FetchStep) -> SourceKind:
    """Find the kind of source that a fetch step, of which templates were filled in, is of.

    Raises:
        UnsupportedError: It is of none that is here.
    """
    found = _find(step)
    if found is not None:
        return found
    if isinstance(step, FetchStepUrl):
        schemes = ", ".join(scheme for kind in _list_sources() for scheme in kind.schemes)
        raise UnsupportedError("URL scheme of a source", found=_scheme_of(step.url), supported=schemes)
    name = _name_of(type(step))
    raise UnsupportedError(
        "fetch step", found=name, supported=f"{', '.join(_list_step_names())}{_describe_missing(name)}"
    )


def find_preparation(step: PrepStep) -> PrepareKind:
    """Find the kind of a prepare step.

    Raises:
        UnsupportedError: It is of none that is here.
    """
    for kind in _list_preparations():
        if isinstance(step, kind.steps):
            return kind
    supported = ", ".join(_name_of(each) for kind in _list_preparations() for each in kind.steps)
    raise UnsupportedError("prepare step", found=_name_of(type(step)), supported=supported)


def check_fetch(step: FetchStep, at: At, settings: SourceSettings) -> None:
    """Reject a fetch step that could never be done here.

    Raises:
        SnapshotError: A kind, a scheme, a pattern or an option that is not built.
    """
    kind = _find(step)
    if isinstance(step, FetchStepUrl):
        if kind is None and not step.url.startswith(TEMPLATE) and _scheme_of(step.url) != DATASET_SCHEME:
            _reject_scheme(step.url, at / "url")
        if kind is not None:
            kind.check(step, at, settings)
        if isinstance(step.event_time, EventTimeSourceFromPath):
            (at / "eventTime").reject("FromMetadata or FromSystemTime for a URL", "FromPath")
    elif kind is not None:
        kind.check(step, at, settings)
    else:
        *names, last = _list_step_names()
        name = _name_of(type(step))
        if missing := _describe_missing(name):
            (at / "kind").reject(f"{', '.join(names)} or {last}{missing}", name)
        (at / "kind").reject(
            f"{', '.join(names)} or {last} ({name} is not taken, as it asks a node of another network, whose "
            "answers nobody here checks; fetch them by a program of yours as NDJSON, declare a push source, and "
            "push them with 'odf-node ingest')",
            name,
        )


def check_prepare(steps: tuple[PrepStep, ...], at: At, settings: SourceSettings) -> None:
    """Reject a prepare step that could never be done here.

    Raises:
        SnapshotError: A kind that is not here, or a command, where nobody may run one, or none in a step that runs one.
    """
    for index, step in enumerate(steps):
        try:
            kind = find_preparation(step)
        except UnsupportedError as error:
            (at / index / "kind").reject(str(error.supported), str(error.found))
        kind.check(step, at / index, settings)


def _find(step: FetchStep) -> SourceKind | None:
    scheme = _place_scheme(step)
    for kind in _list_sources():
        if isinstance(step, kind.steps) and (not kind.schemes or scheme in kind.schemes):
            return kind
    # A pattern of a scheme that is not known is told how patterns of files are written.
    return _FILES if isinstance(step, FetchStepFilesGlob) else None


def _describe_missing(name: str) -> str:
    """Name the plug-in that brings a step that nothing here fetches; empty for one of no plug-in of ours."""
    brought_by = _BROUGHT_BY.get(name)
    return "" if brought_by is None else f"; {name} is brought by the plug-in {brought_by}, which is not installed here"


def _place_scheme(step: FetchStep) -> str:
    """Read the scheme of a URL or a pattern; empty where there is none."""
    if isinstance(step, FetchStepFilesGlob):
        return step.path.partition("://")[0].lower()
    return _scheme_of(step.url) if isinstance(step, FetchStepUrl) else ""


def _scheme_of(url: str) -> str:
    found = _SCHEME.match(url)
    return "" if found is None else found[1].lower()


def _reject_scheme(url: str, at: At) -> None:
    kinds = _list_sources()
    forms = [kind.form for kind in kinds if kind.form]
    schemes = [f"{scheme}:" for kind in kinds for scheme in kind.schemes]
    at.reject(f"{', '.join(forms)} or {DATASET_SCHEME}:NAME", show_url(url), [*schemes, f"{DATASET_SCHEME}:"])


def _list_step_names() -> list[str]:
    return list(dict.fromkeys(_name_of(step) for kind in _list_sources() for step in kind.steps))


def _name_of(step: type) -> str:
    return step.__name__.removeprefix("FetchStep").removeprefix("PrepStep")


def _list_sources() -> list[SourceKind]:
    return [each for each in _list_all() if isinstance(each, SourceKind)]


def _list_preparations() -> list[PrepareKind]:
    return [each for each in _list_all() if isinstance(each, PrepareKind)]


def _list_all() -> list[SourceStep]:
    return [*_CORE, *load_plug_ins(GROUP, SourceStep).values()]
