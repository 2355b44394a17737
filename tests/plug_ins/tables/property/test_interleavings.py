"""Writers of one table at once, in every order that is found: a chain is as if they had come one by one (TABLE-8).

Each writer is a thread with a node of its own, over one real home with real engines. It is held right before its
commit, by which time it has read a head and merged; the machine lets one go on, or kills it there, in any order. What
came out is compared with the writes, done one after another in the order of the versions that they were given.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import odf_node
from odf_node.datasets import writer as chain_writer
from odf_node.front import OpenNode
from odf_node.front.table_operations import Written
from odf_node.records.errors import VersionMovedError
from odf_node.store.write_queue import WriteQueue
from odf_tables.errors import RowsRejectedError

WRITERS: Final = 3
WAIT_S: Final = 120.0
KEYS = st.integers(0, 2)

Rows = dict[int, int]


class KilledError(BaseException):
    """The process of a writer ends here."""


class Writer:
    """A thread that makes one write at a time, and is held before each of its commits."""

    def __init__(self, home: Path) -> None:
        self.node = odf_node.open(home)
        self.state = "idle"
        self.is_waiting = self.is_next = False
        self.result: Written | BaseException | None = None
        self.model: Callable[[Rows], None] = lambda _rows: None
        self.attempts = 0
        self.follows: int | None = None
        self._go_on = threading.Event()
        self._dies = False

    def start(self, table: str, write: Callable[[Any], Written], model: Callable[[Rows], None]) -> None:
        self.state, self.model, self.result, self.attempts = "running", model, None, 0

        def work() -> None:
            CURRENT[threading.get_ident()] = self
            try:
                self.result = write(self.node.table(table))
            except BaseException as error:  # noqa: BLE001 - looked at by the machine
                self.result = error
            self.state = "done"

        threading.Thread(target=work, daemon=True).start()

    def hold(self) -> None:
        """Called right before a commit."""
        self.attempts += 1
        self._go_on.clear()
        self.state = "held"
        if not self._go_on.wait(WAIT_S):
            raise KilledError
        self.state = "running"
        if self._dies:
            self._dies = False
            raise KilledError

    def go_on(self, *, dies: bool) -> None:
        self._dies = dies
        self.state = "running"
        self._go_on.set()


CURRENT: Final[dict[int, Writer]] = {}
_commit, _entered = chain_writer.commit_with_objects, WriteQueue.entered


def _held_commit(*args: Any, **named: Any) -> Any:
    if (writer := CURRENT.get(threading.get_ident())) is not None:
        writer.hold()
    return _commit(*args, **named)


@contextmanager
def _watched_queue(self: WriteQueue, give_up_at: float) -> Iterator[bool]:
    writer = CURRENT[threading.get_ident()]
    writer.is_waiting = True
    try:
        with _entered(self, give_up_at) as is_first:
            writer.is_waiting, writer.is_next = False, True
            yield is_first
    finally:
        writer.is_waiting = writer.is_next = False


class ConcurrentWriters(RuleBasedStateMachine):
    """See the module."""

    folder: ClassVar[tempfile.TemporaryDirectory[str]]
    writers: ClassVar[list[Writer]] = []
    tables: ClassVar[int] = 0

    @initialize()
    def create(self) -> None:
        cls = type(self)
        if not cls.writers:
            cls.folder = tempfile.TemporaryDirectory(prefix="odf-interleavings-")
            cls.writers = [Writer(Path(cls.folder.name, "home")) for _ in range(WRITERS)]
        cls.tables += 1
        self.name = f"table.{cls.tables}"
        self.observer: OpenNode = self.writers[0].node
        self.observer.create_table(self.name, "id BIGINT, value BIGINT", key=["id"])
        self.made: list[tuple[int, Callable[[Rows], None]]] = []
        self.killed = 0

    def _start(
        self, number: int, write: Callable[[Any], Written], model: Callable[[Rows], None], follows: int | None = None
    ) -> None:
        self.writers[number].start(self.name, write, model)
        self.writers[number].follows = follows
        self._settle()

    @precondition(lambda self: any(each.state == "idle" for each in self.writers))
    @rule(
        data=st.data(),
        rows=st.dictionaries(KEYS, st.integers(0, 9), min_size=1),
        is_insert=st.booleans(),
        is_bound=st.sampled_from([False, False, True]),
    )
    def write_rows(self, data: st.DataObject, rows: Rows, *, is_insert: bool, is_bound: bool) -> None:
        number = data.draw(st.sampled_from([n for n, each in enumerate(self.writers) if each.state == "idle"]))
        frame = [{"id": key, "value": value} for key, value in rows.items()]

        def model(table: Rows) -> None:
            assert not is_insert or not rows.keys() & table.keys()
            table.update(rows)

        follows = self._newest() if is_bound else None

        def write(table: Any) -> Written:
            result: Written = (table.insert if is_insert else table.upsert)(frame, if_version=follows)
            return result

        self._start(number, write, model, follows)

    @precondition(lambda self: any(each.state == "idle" for each in self.writers))
    @rule(data=st.data(), value=st.integers(6, 9))
    def delete(self, data: st.DataObject, value: int) -> None:
        number = data.draw(st.sampled_from([n for n, each in enumerate(self.writers) if each.state == "idle"]))
        self._start(number, lambda table: table.delete(where=f"value >= {value}"), _delete_from(value))

    @precondition(lambda self: any(each.state == "held" for each in self.writers))
    @rule(data=st.data(), dies=st.sampled_from([False, False, False, True]))
    def go_on(self, data: st.DataObject, *, dies: bool) -> None:
        held = [each for each in self.writers if each.state == "held"]
        data.draw(st.sampled_from(held)).go_on(dies=dies)
        self._settle()

    def _newest(self) -> int:
        (found,) = self.observer.datasets(self.name)
        return found.blocks - 1

    def _settle(self) -> None:
        """Wait until each writer is held, done, or waits for one that is held."""
        give_up_at = time.monotonic() + WAIT_S
        while not all(self._is_settled(each) for each in self.writers):
            assert time.monotonic() < give_up_at, [(each.state, each.is_waiting, each.is_next) for each in self.writers]
            time.sleep(0.001)
        for each in self.writers:
            if each.state == "done":
                each.state = "idle"
                self._note(each)

    def _is_settled(self, writer: Writer) -> bool:
        if writer.state == "running":
            return writer.is_waiting and any(each.is_next and each.state == "held" for each in self.writers)
        return True

    def _note(self, writer: Writer) -> None:
        match writer.result:
            case Written(added=added, corrected=corrected, retracted=retracted, version=version):
                if added or corrected or retracted:
                    assert writer.follows in {None, version - 1}
                    self.made.append((version, writer.model))
            case VersionMovedError():
                assert writer.follows is not None
                assert self._newest() > writer.follows
            case RowsRejectedError():
                assert "there already" in str(writer.result)
            case KilledError():
                self.killed += 1
            case other:
                raise AssertionError(f"a write ended with {other!r}")

    @invariant()
    def writers_are_overtaken_a_bounded_number_of_times(self) -> None:
        # Its first attempt, one for each writer that had begun before it was next, and the last.
        assert all(each.attempts <= WRITERS + 1 for each in self.writers)

    def teardown(self) -> None:
        if not hasattr(self, "name"):
            return
        while held := [each for each in self.writers if each.state == "held"]:
            held[0].go_on(dies=False)
            self._settle()
        versions = [version for version, _ in self.made]
        assert len({*versions}) == len(versions)
        history = [each.version for each in self.observer.table(self.name).history() if each.rows]
        assert sorted(versions, reverse=True) == history  # nothing is lost, and nothing of the killed is there
        table: Rows = {}
        for _, model in sorted(self.made, key=lambda each: each[0]):
            model(table)
        state = self.observer.table(self.name).state().arrow
        assert dict(zip(state.column("id").to_pylist(), state.column("value").to_pylist(), strict=True)) == table


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[ConcurrentWriters]:
    """Writers that a test itself lets go on, in an order in which a fault of the commit shows."""
    with (
        patch.object(chain_writer, "commit_with_objects", _held_commit),
        patch.object(WriteQueue, "entered", _watched_queue),
    ):
        case = ConcurrentWriters()
        cls = type(case)
        cls.writers = [Writer(tmp_path / "home") for _ in range(WRITERS)]
        try:
            case.create()
            yield case
        finally:
            for each in cls.writers:
                if each.state == "held":
                    each.go_on(dies=True)
            for each in cls.writers:
                with suppress(Exception):
                    each.node.close()
            cls.writers = []


def _upsert(writers: ConcurrentWriters, number: int, rows: Rows, **options: Any) -> None:
    frame = [{"id": key, "value": value} for key, value in rows.items()]
    writers._start(number, lambda table: table.upsert(frame, **options), lambda table: table.update(rows))


def _go_on(writers: ConcurrentWriters, *numbers: int) -> None:
    for number in numbers:
        assert writers.writers[number].state == "held"
        writers.writers[number].go_on(dies=False)
        writers._settle()


def test_condition_holds_for_the_rows_right_before_the_commit(writers: ConcurrentWriters) -> None:
    _upsert(writers, 0, {1: 9, 2: 1})
    _go_on(writers, 0)

    writers._start(0, lambda table: table.delete(where="value >= 6"), _delete_from(6))
    _upsert(writers, 1, {1: 1, 2: 9})
    _go_on(writers, 1, 0)

    writers.teardown()
    assert writers.observer.table(writers.name).state().arrow.column("id").to_pylist() == [1]


def test_who_is_next_is_not_overtaken_by_who_comes_later(writers: ConcurrentWriters) -> None:
    _upsert(writers, 0, {1: 1})
    _upsert(writers, 1, {2: 2})
    _go_on(writers, 1, 0)  # the first is overtaken once, and has its place in the queue

    assert writers.writers[0].is_next
    _upsert(writers, 2, {0: 0})

    assert (writers.writers[2].is_waiting, writers.writers[2].attempts) == (True, 0)
    _go_on(writers, 0, 2)
    writers.teardown()


def test_write_bound_to_a_version_that_another_writer_follows_writes_nothing(writers: ConcurrentWriters) -> None:
    version = writers._newest()
    _upsert(writers, 0, {1: 1}, if_version=version)
    _upsert(writers, 1, {2: 2})
    writers.writers[0].follows = version

    _go_on(writers, 1, 0)

    assert isinstance(writers.writers[0].result, VersionMovedError)
    writers.teardown()


def _delete_from(value: int) -> Callable[[Rows], None]:
    def model(table: Rows) -> None:
        for key in [key for key, found in table.items() if found >= value]:
            del table[key]

    return model


def test_writers_at_once_are_as_if_they_came_one_by_one() -> None:
    with (
        patch.object(chain_writer, "commit_with_objects", _held_commit),
        patch.object(WriteQueue, "entered", _watched_queue),
    ):
        try:
            case = ConcurrentWriters.TestCase
            case.settings = settings(max_examples=8, stateful_step_count=12, deadline=None, derandomize=True)
            case("runTest").runTest()
        finally:
            for each in ConcurrentWriters.writers:
                with suppress(Exception):
                    each.node.close()
            ConcurrentWriters.writers.clear()
            ConcurrentWriters.folder.cleanup()
