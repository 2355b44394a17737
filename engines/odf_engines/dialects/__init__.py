"""SQL of other engines, as Spark reads it; runs beside the node, and in no engine."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.dialects import datafusion as datafusion
    from odf_engines.dialects import double_quotes as double_quotes
    from odf_engines.dialects import flink as flink
    from odf_engines.dialects import statements as statements
    from odf_engines.dialects import translation as translation
    from odf_engines.dialects import window_tables as window_tables
else:
    __getattr__ = late_modules(__name__)
