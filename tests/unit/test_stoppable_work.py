"""A daemon's work with a node of its own: ended from outside before, while and after it runs, and always tidied up."""

import asyncio
import threading
from pathlib import Path

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.daemon.stoppable_work import StoppableWork
from odf_node.home_folder import HomeFolder


class NodeWithoutEngines(Node):
    """A real node whose engines cannot be made; it counts how often it was closed."""

    closed = 0

    @property
    def engines(self) -> object:  # type: ignore[override]
        raise OSError("no engine can be made")

    def close(self) -> None:
        self.closed += 1
        super().close()


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    return HomeFolder(tmp_path / "home")


def open_node(home: HomeFolder) -> Node:
    return Node(home, clock=SystemClock())


async def wait_for_ever(node: Node) -> None:
    await asyncio.Event().wait()


def test_work_that_ends_by_itself_gives_its_result(home: HomeFolder) -> None:
    async def tell(node: Node) -> HomeFolder:
        return node.home.folder

    assert StoppableWork(lambda: open_node(home)).run(tell) == home


def test_work_that_was_stopped_before_it_began_ends_at_once(home: HomeFolder) -> None:
    work = StoppableWork(lambda: open_node(home))
    work.stop()
    with pytest.raises(asyncio.CancelledError):
        work.run(wait_for_ever)


def test_work_that_is_stopped_while_it_runs_ends(home: HomeFolder) -> None:
    work = StoppableWork(lambda: open_node(home))
    has_begun, ended = threading.Event(), threading.Event()

    async def begin(node: Node) -> None:
        has_begun.set()
        await wait_for_ever(node)

    def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            work.run(begin)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert has_begun.wait(60)
    work.stop()
    work.stop()
    thread.join(60)
    assert ended.is_set()


def test_stop_after_the_end_does_nothing(home: HomeFolder) -> None:
    async def nothing(node: Node) -> None: ...

    work = StoppableWork(lambda: open_node(home))
    work.run(nothing)
    work.stop()


def test_node_is_closed_though_its_engines_cannot_be_made(home: HomeFolder) -> None:
    node = NodeWithoutEngines(home, clock=SystemClock())
    with pytest.raises(OSError, match="no engine"):
        StoppableWork(lambda: node).run(wait_for_ever)
    assert node.closed == 1
