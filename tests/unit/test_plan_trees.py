"""Walks over trees of Spark's: what a node was asked it is not asked again, and its own names stay what they are."""

from collections import Counter
from typing import Any

from odf_spark.gate.map_class import is_no_map
from odf_spark.gate.trees import class_name, expressions_of, iter_plan, operands_of

ASKED: Counter[str] = Counter()


class Sequence:
    """As Scala's: asked for its size and for each member."""

    def __init__(self, *members: Any) -> None:
        self.members = members

    def size(self) -> int:
        ASKED["size"] += 1
        return len(self.members)

    def apply(self, index: int) -> Any:
        ASKED["member"] += 1
        return self.members[index]


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def getName(self) -> str:  # noqa: N802 - Java's
        return self.name


class Node:
    """Answers as a node of Java's does, and counts."""

    def __init__(self, name: str, *below: "Node", inner: tuple["Node", ...] = (), top: tuple["Node", ...] = ()) -> None:
        self._name, self._below, self._inner, self._top = name, below, inner, top

    def getClass(self) -> Named:  # noqa: N802 - Java's
        ASKED["class"] += 1
        return Named(f"org.apache.spark.sql.catalyst.plans.{self._name}")

    def children(self) -> Sequence:
        ASKED["children"] += 1
        return Sequence(*self._below)

    def innerChildren(self) -> Sequence:  # noqa: N802 - Java's
        ASKED["inner"] += 1
        return Sequence(*self._inner)

    def expressions(self) -> Sequence:
        ASKED["expressions"] += 1
        return Sequence(*self._top)


def test_second_walk_over_a_tree_asks_nothing_and_sees_the_same() -> None:
    ASKED.clear()  # what the others asked
    left, right, inner = Node("Left"), Node("Right"), Node("Inner")
    top = Node("Top", left, right, inner=(inner,))
    first = list(iter_plan(top))
    names = [class_name(each).rpartition(".")[2] for each in first]
    assert names == ["Top", "Inner", "Left", "Right"]
    before = Counter(ASKED)
    assert (before["children"], before["class"]) == (4, 4)
    assert list(iter_plan(top)) == first
    assert [class_name(each).rpartition(".")[2] for each in first] == names
    assert before == ASKED


def test_lists_that_are_given_are_the_callers_own_and_a_nodes_names_stay_its_own() -> None:
    plan = Node("Plan", Node("Below"), top=(Node("Expression"),))
    for find in (operands_of, expressions_of):
        found = find(plan)
        find(plan).clear()
        assert find(plan) == found
    assert plan.children().size() == 1
    assert plan.expressions().size() == 1
    assert class_name(plan).endswith(".Plan")


def test_text_that_groups_or_joins_is_no_map_and_what_it_only_defines_says_nothing() -> None:
    grouped = Node("Project", Node("Aggregate", Node("UnresolvedRelation")))
    assert is_no_map(grouped)
    assert is_no_map(Node("Project", Node("Filter", Node("Join", Node("Left"), Node("Right")))))
    assert not is_no_map(Node("UnresolvedWith", Node("Project", Node("UnresolvedRelation")), inner=(grouped,)))
