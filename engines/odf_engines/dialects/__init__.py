"""SQL of other engines, as Spark reads it; runs beside the node, and in no engine."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.dialects import queries as queries
    from odf_engines.dialects import translation as translation
else:
    __getattr__ = late_modules(__name__)
