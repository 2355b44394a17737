"""A session that also answers questions in Spark's SQL, where it surely answers them alike.

Source: clause QUERY-7 in ``spec/query.md``.
"""

from dataclasses import replace
from typing import Final

from odf_engines.contract import QueryRequest, QueryResponse
from odf_engines.datafusion import spark_questions
from odf_engines.host.query_bounds import check_query_bounds
from odf_engines.host.session import HostSession

SPARK: Final = "spark"


class FusionSession(HostSession):
    """See ``HostSession``; questions are translated here, outside of the sandbox, which has no parser of other SQL."""

    def query(self, request: QueryRequest) -> QueryResponse:
        if request.dialect == SPARK:
            check_query_bounds(request.sql)
            request = replace(
                request, sql=spark_questions.translation.translate_question(request.sql, request.tables), dialect=None
            )
        return super().query(request)
