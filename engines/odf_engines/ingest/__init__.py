"""Sources as rows: reading, plain conversion, appending, and the files that an ingest leaves. Knows no engine."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.ingest import declared as declared
    from odf_engines.ingest import quarantine as quarantine
    from odf_engines.ingest import shapefile_features as shapefile_features
    from odf_engines.ingest import source_schema as source_schema
    from odf_engines.ingest import state as state
else:
    __getattr__ = late_modules(__name__)
