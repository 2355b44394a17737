"""Derivatives as honest publishers make them, over random roots: what a forger starts from.

Roots have retractions, corrections, nulls, empty texts, rows that come late, watermarks and blocks that say nothing
about rows. Steps are made by ``Transformer`` over whatever the roots gained.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from odf_engines.engine import EngineSession
from odf_protocol.events import (
    AddData,
    DatasetKind,
    Seed,
    SetInfo,
    SetTransform,
    SqlQueryStep,
    TemporalTable,
    TransformInput,
    TransformSql,
)
from odf_protocol.timestamp import Timestamp
from support.offers import NOON, Judge, PeerChain, PublisherHome, SharedEngine, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY
from support.warm_engine import warm_session

_ALL_MS = 60_000  # no event is so late
APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
TEXTS = ("Oslo", "Rome", "", None, "Ünalaska", "a'b", "Oslo ")
_MAP = "SELECT event_time, city, people + 1 AS more, CAST(people AS DOUBLE) / 8 AS share FROM in0 WHERE people <> 3"
_AS_OF = """
    SELECT a.event_time, a.city, a.people, b.people AS before FROM in0 AS a
    LEFT JOIN in1 FOR SYSTEM_TIME AS OF a.event_time AS b ON a.city = b.city
"""


@dataclass(frozen=True)
class Kind:
    """A query, and what of an input shows in which step it was read: ``rows``, ``marks`` or neither."""

    engine: str
    query: str
    shows: str = ""
    key: tuple[str, ...] = ()
    roots: int = 1

    def declare(self, inputs: Sequence[PeerChain]) -> SetTransform:
        if not self.key:
            return select(self.query, *(each.id for each in inputs), engine=self.engine)
        named = tuple(TransformInput(dataset_ref=str(each.id), alias=f"in{n}") for n, each in enumerate(inputs))
        query = TransformSql(
            engine=self.engine,
            queries=(SqlQueryStep(query=self.query),),
            temporal_tables=(TemporalTable(name="in1", primary_key=self.key),),
        )
        return SetTransform(inputs=named, transform=query)


KINDS = {
    "datafusion-map": Kind("datafusion", _MAP, "rows"),
    "spark-map": Kind("spark", _MAP.replace("FROM", ", struct(city, people) AS pair FROM"), "rows"),
    "spark-view": Kind(
        "spark",
        "SELECT max(event_time) AS event_time, city, sum(people) AS people, count(*) AS n FROM in0 GROUP BY city",
        "rows",
    ),
    "spark-windows": Kind(
        "spark",
        "SELECT window.end AS event_time, city, count(*) AS n, max(people) AS people FROM in0 "
        "GROUP BY window(event_time, '4 seconds'), city",
        "marks",
    ),
    "spark-sessions": Kind(
        "spark",
        "SELECT session_window.end AS event_time, city, count(*) AS n FROM in0 "
        "GROUP BY session_window(event_time, '2 seconds'), city",
        "marks",
    ),
    "spark-as-of": Kind("spark", _AS_OF, key=("city",), roots=2),
}


class NamedEngines(SharedEngine):
    """As ``SharedEngine``, with the engine that a query names."""

    def own_session(self, name: str) -> EngineSession:
        self.get_engine(name)
        return warm_session(name)


def judge_with_engines(folder: Path) -> Judge:
    """A node that has every engine."""
    judge = Judge.create(folder)
    judge.engines = NamedEngines(folder.with_suffix(".engines"), judge.home)
    return judge


@dataclass
class Published:
    """A derivative, its inputs and its publisher's node."""

    kind: Kind
    home: PublisherHome
    roots: list[PeerChain]
    chain: PeerChain
    _given: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    _marks: dict[int, int] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path, kind: Kind, random: Random) -> "Published":
        """Publish a derivative of some steps."""
        folder.mkdir(parents=True)
        home = PublisherHome(judge_with_engines(folder / "home"))
        roots = [
            root_chain(folder, slices=0, name=f"root{n}", key=key)
            for n, key in enumerate((b"\x01" * 32, OTHER_KEY)[: kind.roots])
        ]
        chain = PeerChain(folder, key=NEW_KEY, name="derived")
        chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(kind.declare(roots))
        made = cls(kind, home, roots, chain)
        for root in roots:
            made._add_rows(root, random)
            home.keep(root)
        home.keep(chain)
        last = random.randint(2, 4)
        for step in range(last + 1):
            for root in roots if step else ():
                if step == last:
                    made._state_mark(root, _ALL_MS)  # so that final queries give something
                else:
                    made._gain(root, random)
                home.keep(root)
            home.run(chain, at=Timestamp(NOON.seconds + 1_000 + 10 * step))
        return made

    def _gain(self, root: PeerChain, random: Random) -> None:
        """Add some blocks to a root, now and then only a watermark."""
        mark = random.random() < 0.8
        if not mark or random.random() < 0.7:
            for _ in range(random.randint(1, 2)):
                self._add_rows(root, random)
        if random.random() < 0.2:
            root.add(SetInfo(description=f"at block {len(root.blocks)}"))
        if mark:
            self._state_mark(root, random.randint(2_000, 7_000))

    def _state_mark(self, root: PeerChain, later_ms: int) -> None:
        at = self._marks[id(root)] = self._marks.get(id(root), 0) + later_ms
        stated = Timestamp.from_unix_ms(NOON.unix_ms + at)
        last = root.next_offset() - 1
        root.add(AddData(prev_offset=None if last < 0 else last, new_watermark=stated))

    def _add_rows(self, root: PeerChain, random: Random) -> None:
        """Add a slice: some rows that are new, some that take or correct what was given before."""
        given = self._given.setdefault(id(root), [])
        base = self._marks.get(id(root), 0)
        rows: list[tuple[int, Any, Any, int]] = []
        for _ in range(random.randint(1, 6)):
            act = random.random()
            new = (random.choice(TEXTS), random.choice((0, 1, 2, 5, 8, None)), base + random.randint(-1_500, 6_000))
            if given and act < 0.2:
                rows.append((RETRACT, *given.pop(random.randrange(len(given)))))
            elif given and act < 0.4:
                rows.append((CORRECT_FROM, *given.pop(random.randrange(len(given)))))
                rows.append((CORRECT_TO, *new))
                given.append(new)
            else:
                rows.append((APPEND, *new))
                given.append(new)
        # One that every query lets through.
        rows.append((APPEND, "Vaduz", 7, base + 500))
        root.add_rows(
            [(city, people) for _op, city, people, _at in rows],
            op=[row[0] for row in rows],
            event_time=[NOON.unix_ms + row[3] for row in rows],
        )
