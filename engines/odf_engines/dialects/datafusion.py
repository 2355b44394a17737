"""DataFusion's SQL for the library that translates queries: PostgreSQL's, but that names stand in back-ticks too."""

from sqlglot.dialects.postgres import Postgres


class DataFusion(Postgres):  # type: ignore[misc]
    """See the module."""

    class Tokenizer(Postgres.Tokenizer):  # type: ignore[misc]
        """Reads `` `name` `` beside ``"name"``."""

        IDENTIFIERS = ('"', "`")
