"""Queries of a benchmark of auctions as people write them: without a thought of event times."""

import re
from typing import Final

from odf_engines.contract import QueryTable
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
)
from odf_protocol.vocabulary import Vocabulary, system_fields


def _table(name: str, /, **columns: DataType) -> QueryTable:
    own = tuple(DataField(name=each, type=DataTypeOption(inner=kind)) for each, kind in columns.items())
    schema = DataSchema(fields=(*system_fields(Vocabulary()), *own))
    return QueryTable(name=name, vocabulary=Vocabulary(), schema=schema)


_NUMBER, _TEXT, _TIME = DataTypeInt64(), DataTypeString(), DataTypeTimestamp()
TABLES: Final = {
    "bid": _table("bid", auction=_NUMBER, bidder=_NUMBER, price=_NUMBER, channel=_TEXT),
    "auction": _table("auction", id=_NUMBER, seller=_NUMBER, category=_NUMBER, expires=_TIME),
    "person": _table("person", id=_NUMBER, name=_TEXT, city=_TEXT, state=_TEXT),
}
PASSING: Final = {
    "q0": ("SELECT auction, bidder, price FROM bid", "SELECT event_time, auction, bidder, price FROM bid"),
    "q2": (
        "SELECT auction, price FROM bid WHERE auction % 123 = 0",
        "SELECT event_time, auction, price FROM bid WHERE auction % 123 = 0",
    ),
    "q17": (
        "SELECT auction, count(*) AS bids, max(price) AS top FROM bid GROUP BY auction",
        "SELECT max(event_time) AS event_time, auction, count(*) AS bids, max(price) AS top FROM bid GROUP BY auction",
    ),
    "q9": (
        "WITH b AS (SELECT auction, price FROM bid) SELECT auction, price FROM b",
        None,
    ),
    "q20": (
        "SELECT b.auction, a.category FROM bid b JOIN auction a ON b.auction = a.id",
        None,
    ),
    "q3": (
        "SELECT person.name, auction.id FROM auction JOIN person ON auction.seller = person.id",
        "SELECT auction.event_time, person.name, auction.id FROM auction JOIN person ON auction.seller = person.id",
    ),
    "q13": (
        "SELECT DISTINCT bidder FROM bid",
        "SELECT DISTINCT event_time, bidder FROM bid",
    ),
    "q14": (
        "SELECT auction, '(' AS sign FROM bid -- SELECT ( of all",
        "SELECT event_time, auction, '(' AS sign FROM bid -- SELECT ( of all",
    ),
}
"""By name: what is written, and what is said to pass; None: nothing certain is known, and the rule is said."""
ONE_TIME: Final = {
    "q15": ("SELECT date_trunc('day', event_time) AS day, count(*) AS bids FROM bid GROUP BY 1", "day"),
    "q16": ("SELECT channel, max(event_time) AS latest, count(*) AS bids FROM bid GROUP BY channel", "latest"),
    "q6": ("SELECT expires, seller FROM auction", "expires"),
    "q4": ("SELECT category, CAST(event_time AS DATE) AS day FROM auction", "day"),
}
"""By name: a query, and the only time of its result."""
SEVERAL_TIMES: Final = "SELECT event_time AS sold, expires, seller FROM auction"


def tables_of(query: str) -> list[QueryTable]:
    """Return the inputs that a query reads."""
    return [table for name, table in TABLES.items() if re.search(rf"\b(?:FROM|JOIN) {name}\b", query)]
