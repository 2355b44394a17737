"""Questions in Spark's SQL that DataFusion answers with the same rows, names and types; all others it leaves alone.

A question is read by a parser and written anew from the parts that are listed here, each of which means the same to
both engines or is written so that it does: names, types, overflow, order of nulls and of rows. Whatever is not listed,
and whatever fails on the way, is for Spark. So nothing has to be known about the rest of either language.

Source: clauses QUERY-7 and QUERY-8 in ``spec/query.md``.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.datafusion.spark_questions import translation as translation
else:
    __getattr__ = late_modules(__name__)
