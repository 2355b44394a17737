"""Clocks that are set forward and back, between commands and while the daemon runs (real processes and sockets)."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from odf_node.adapters.clocks import SystemClock
from odf_node.adapters.request_signing import NodeSigner
from odf_node.exchange.tokens import Tokens
from odf_node.ports.keys import PrivateKey
from odf_protocol.did import DidKey
from odf_protocol.timestamp import Timestamp
from support.daemons import daemon
from support.exchange_nodes import TOKEN, Chain, TestNode
from support.homes import make_home
from support.nodes import RealNode
from support.shifted_process import ShiftedClock

DAY_S = 86_400
DECADE_S = 3_650 * DAY_S
MANIFEST = """
kind: DatasetSnapshot
version: 1
content: {name: measured, kind: Root, metadata: []}
"""


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    return ShiftedClock(tmp_path / "clock")


def status_of(url: str, headers: Mapping[str, str]) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=240) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_blocks_never_run_back_in_time_and_the_user_is_told(tmp_path: Path, clock: ShiftedClock) -> None:
    node = RealNode(tmp_path / "home")
    (tmp_path / "measured.yaml").write_text(MANIFEST)
    node.must("add", str(tmp_path / "measured.yaml"))

    def state(watermark: str, shift_s: int) -> str:
        clock.set(shift_s)
        words = ("pull", "measured", "--set-watermark", watermark)
        return node.must(*words, environment=clock.environment).err

    assert state("2020-01-02T00:00:00Z", DECADE_S) == ""
    reported = state("2020-01-03T00:00:00Z", 0)
    assert "set the clock right" in reported
    assert len(reported.splitlines()) == 1
    assert "set the clock right" in state("2020-01-04T00:00:00Z", -DECADE_S)
    log = node.must("log", "measured", "-o", "json").out.splitlines()
    times = [Timestamp.parse(json.loads(line)["content"]["systemTime"]) for line in reversed(log)]
    assert times == sorted(times)
    assert times[-1] == times[-2] == times[-3]
    assert times[-1].seconds > time.time() + DECADE_S - DAY_S
    assert node.must("verify", "measured").code == 0
    # Who names a time gets that one or a rejection, not another time.
    refused = node.run("pull", "measured", "--set-watermark", "2020-01-05T00:00:00Z", "--system-time", "2021-01-01")
    assert (refused.code, "CHAIN-8" in refused.err) == (4, True)


def test_daemon_whose_clock_was_wrong_for_a_while_is_right_afterwards(tmp_path: Path, clock: ShiftedClock) -> None:
    home, hidden = TestNode.create(tmp_path / "home"), Chain("hidden.data").add(b"slice")
    home.keep(hidden, published=False)
    home.keep(Chain("open.data").add(b"other"))
    home.put_token(scopes=("read",), expires_at=Timestamp(int(time.time()) + DAY_S // 2))
    friend = PrivateKey(b"\7" * 32)
    Tokens(replace(make_home(home.home, home.store), clock=SystemClock())).create(
        "friend", datasets=(), expires_at=None, reads_all=True, node=DidKey(friend.public_key())
    )
    home.store.close()
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    with daemon(tmp_path / "home", environment=clock.environment) as node:
        private, public = f"{node.url}/hidden.data/refs/head", f"{node.url}/open.data/refs/head"
        signed = NodeSigner(friend, SystemClock())("GET", URL(private), {})
        assert [status_of(private, bearer), status_of(private, signed), status_of(public, {})] == [200, 200, 200]
        assert status_of(private, signed) == 401

        for shift_s in (DAY_S, DECADE_S):
            clock.set(shift_s)
            fresh = NodeSigner(friend, SystemClock())("GET", URL(private), {})
            # Nobody gets in by a wrong clock, and who needs no clock is served.
            assert status_of(private, bearer) in {401, 404}
            assert [status_of(private, fresh), status_of(public, {})] == [401, 200]
        clock.set(-DAY_S)
        assert status_of(private, NodeSigner(friend, SystemClock())("GET", URL(private), {})) == 401
        assert status_of(public, {}) == 200

        clock.set(0)
        assert status_of(private, signed) == 401
        fresh = NodeSigner(friend, SystemClock())("GET", URL(private), {})
        assert [status_of(private, bearer), status_of(private, fresh), status_of(public, {})] == [200, 200, 200]

    clock.set(DECADE_S)
    swept = RealNode(tmp_path / "home").must("gc", "-o", "json", environment=clock.environment)
    assert json.loads(swept.out)["objects"] == 0
    TestNode.create(tmp_path / "home").objects.check(next(iter(hidden.objects)))
