"""Three homes with a daemon each; the one in the middle is killed: nothing is lost, and nothing done twice.

The last one re-executes what the middle one computed, so it follows the root, too.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from support.city_datasets import root_manifest
from support.convergence_homes import DERIVATIVE, SETTINGS, add, blocks_of, cities_of, ingest, states
from support.daemons import Daemon, daemon, wait_until
from support.nodes import RealNode

pytestmark = [pytest.mark.usefixtures("light_engines"), pytest.mark.timeout(900)]


def start(stack: ExitStack, node: RealNode, *peers: Daemon, port: int = 0) -> Daemon:
    bootstrap = f'bootstrap = "{" ".join(each.url for each in peers)}"' if peers else ""
    settings = f"[listen]\nport = {port}\n{SETTINGS.format(more=bootstrap)}"
    return stack.enter_context(daemon(node.home, settings=settings))


def test_late_row_becomes_right_over_two_hops_though_the_middle_is_killed(tmp_path: Path) -> None:
    """CONVERGE-10, CONVERGE-12: A has a root, B derives from it, C from what B derived."""
    first, middle, last = (RealNode(tmp_path / name) for name in ("first", "middle", "last"))
    add(first, tmp_path, root_manifest("cities"))
    first.must("publish", "cities")
    ingest(first, tmp_path, "Oslo", "Rome")
    with ExitStack() as stack:
        a = start(stack, first)
        middle.must("subscribe", f"{a.url}/cities", "--as", "cities")
        middle.must("pull", f"{a.url}/cities")
        add(middle, tmp_path, DERIVATIVE.format(name="names", source="cities", where=""))
        middle.must("publish", "names")
        with ExitStack() as killed:
            b = start(killed, middle, a)
            wait_until(lambda: cities_of(middle, "names") == ["Oslo", "Rome"] or None, b.log_file.read_text)
            last.must("subscribe", f"{a.url}/cities", "--as", "cities")
            last.must("pull", f"{a.url}/cities")
            last.must("subscribe", f"{b.url}/names", "--as", "names")
            last.must("pull", f"{b.url}/names")
            add(last, tmp_path, DERIVATIVE.format(name="report", source="names", where=""))
            c = start(stack, last, a, b)
            wait_until(lambda: cities_of(last, "report") == ["Oslo", "Rome"] or None, c.log_file.read_text)
            b.process.kill()
            b.process.wait()

        ingest(first, tmp_path, "Lima")
        again = start(stack, middle, a, port=int(b.url.rpartition(":")[2]))
        everything = ["Lima", "Oslo", "Rome"]
        wait_until(lambda: cities_of(middle, "names") == everything or None, again.log_file.read_text)
        wait_until(lambda: cities_of(last, "report") == everything or None, c.log_file.read_text)
        assert {state for state, _ in states(middle).values()} == {"up to date"}
    # One step for what was there at first, and one for the late row, wherever it was killed.
    assert blocks_of(middle, "names").count("ExecuteTransform") == 2
    assert blocks_of(last, "report").count("ExecuteTransform") == 2
    assert last.must("verify", "report").code == 0
