"""What the plug-ins of an ingest are called, by stage: as its manifest calls them.

Source: clause STAGE-1 in ``spec/observing.md``.
"""

from odf_engines.contract import IngestRequest
from odf_engines.stage_metrics import IngestStage


def name_format(request: IngestRequest) -> str:
    """Name what takes the file of a request apart: the reader, or the format."""
    return type(request.read).__name__.removeprefix("ReadStep") if request.reader is None else request.reader.name


def name_strategy(request: IngestRequest) -> str:
    """Name the merge strategy of a request."""
    added = request.strategy
    return type(request.merge).__name__.removeprefix("MergeStrategy") if added is None else added.name


def names_of(request: IngestRequest) -> frozenset[tuple[str, str]]:
    """List the stages of a request that run inside an engine, each with the empty name and those of its plug-ins."""
    plug_ins = {
        IngestStage.READ: (name_format(request),),
        IngestStage.CONVERT: tuple(call.name for call in request.converters),
        IngestStage.PREPROCESS: () if request.preprocess is None else (request.preprocess.engine.lower(),),
        IngestStage.VALIDATE: tuple(call.name for call in request.validators),
        IngestStage.MERGE: (name_strategy(request),),
        IngestStage.QUARANTINE: (),
    }
    return frozenset((stage.value, name) for stage, names in plug_ins.items() for name in ("", *names))
