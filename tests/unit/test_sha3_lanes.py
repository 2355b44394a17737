"""SHA3-256 of several messages at once: always what ``hashlib`` computes, and nobody waits for ever."""

import array
import hashlib
import random
import subprocess
import sys
import textwrap
import threading
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

llvm = pytest.importorskip("llvmlite.binding", reason="asked for on Linux on x86-64 only")

from odf_node.sha3 import compiled, hashing, keccak  # noqa: E402 - with what may be missing
from odf_node.sha3.compiled import LANES, Message, Program, Programs  # noqa: E402
from odf_node.sha3.hashing import prepare, sha3_256  # noqa: E402
from odf_node.sha3.keccak import RATE_BYTES  # noqa: E402
from odf_node.sha3.lane_hash import LaneHash, are_right  # noqa: E402
from odf_node.sha3.lanes import Lanes  # noqa: E402

CONTENT = random.Random(1).randbytes(3 * 1024 * 1024)
SIZES = [n + d for n in (0, RATE_BYTES, 2 * RATE_BYTES, 15 * RATE_BYTES, 64 * 1024) for d in (-1, 0, 1) if n + d >= 0]
BLOCKS = len(CONTENT) // RATE_BYTES
ENOUGH_S = 60.0


@pytest.fixture(scope="module")
def separate() -> Programs:
    """As on machines whose vectors do not pay for one message."""
    if not compiled.may_run_new_code():
        pytest.skip("no code may be made here")
    return Programs(Program(1), Program(LANES))


@pytest.fixture(scope="module")
def wrong_program(separate: Programs) -> Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keccak, "round_constants", lambda right=keccak.round_constants: [*right()[:-1], 0])
        return Program(1)


@pytest.fixture(params=["separate", "the same"])
def lanes(request: pytest.FixtureRequest, separate: Programs) -> Lanes:
    return Lanes(separate if request.param == "separate" else Programs(separate._several, separate._several))


@pytest.fixture(autouse=True)
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test prepares is gone after it."""
    monkeypatch.setattr(hashing, "_start_hash", hashlib.sha3_256)


def expected(content: bytes | memoryview) -> bytes:
    return hashlib.sha3_256(content).digest()


@given(
    st.lists(st.sampled_from(SIZES) | st.integers(0, 500), max_size=6), st.sampled_from([bytes, bytearray, memoryview])
)
def test_any_pieces_give_the_hash_of_the_whole(
    separate: Programs, sizes: list[int], kind: Callable[[bytes], bytes]
) -> None:
    for programs in (separate, Programs(separate._several, separate._several)):
        made, end = LaneHash(Lanes(programs)), 0
        for size in sizes:
            made.update(kind(CONTENT[end : end + size]))
            end += size
            assert made.digest() == expected(CONTENT[:end])


@pytest.mark.parametrize(
    "buffer",
    [
        array.array("d", range(100)),
        memoryview(bytearray(CONTENT[:600])).cast("I", [3, 50]),
        np.arange(300, dtype=">i4"),
        np.zeros((0, 3)),
        np.array(7),
        memoryview(CONTENT)[7:3000],
    ],
    ids=["doubles", "two dimensions", "of another byte order", "empty", "no dimension", "a part"],
)
def test_buffers_of_any_type_are_hashed_as_bytes(lanes: Lanes, buffer: bytes) -> None:
    made = LaneHash(lanes)
    made.update(b"before")
    made.update(buffer)
    assert made.digest() == expected(b"before" + bytes(memoryview(buffer).tobytes()))


def test_what_is_not_contiguous_or_not_bytes_is_refused_and_changes_nothing(lanes: Lanes) -> None:
    made = LaneHash(lanes)
    made.update(b"abc")
    with pytest.raises(BufferError):
        made.update(memoryview(CONTENT)[:1000:2])
    with pytest.raises(TypeError):
        made.update("text")  # type: ignore[arg-type]
    assert made.digest() == expected(b"abc")


def test_copy_goes_on_separately(lanes: Lanes) -> None:
    made = LaneHash(lanes)
    made.update(CONTENT[:200])
    copy = made.copy()
    made.update(b"one" * 100)
    copy.update(b"other" * 100)
    assert made.digest() == expected(CONTENT[:200] + b"one" * 100)
    assert copy.digest() == expected(CONTENT[:200] + b"other" * 100)


class Hashing:
    """A thread that hashes what it is told, in one piece or several."""

    def __init__(self, lanes: Lanes, *pieces: bytes | memoryview) -> None:
        self._lanes, self._pieces = lanes, pieces
        self.digest: bytes | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def end(self) -> bytes | None:
        """Wait for it; what it computed, None where it failed."""
        self.thread.join(ENOUGH_S)
        assert not self.thread.is_alive()
        return self.digest

    def _run(self) -> None:
        made = LaneHash(self._lanes)
        try:
            for piece in self._pieces:
                made.update(piece)
            self.digest = made.digest()
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.error = error


class InterruptionError(Exception):
    """Raised in a thread that leads."""


class WatchedPrograms(Programs):
    """Calls a function of the test before and after each step, with which thread takes how many messages."""

    def __init__(self, programs: Programs) -> None:
        super().__init__(programs._one, programs._several)
        self.steps: list[tuple[threading.Thread, int]] = []
        self.before: Callable[[], None] = bool
        self.after: Callable[[], None] = bool

    def absorb(self, messages: Sequence[Message], blocks: int) -> None:
        if blocks < 100:  # of what is held back, and the padding
            super().absorb(messages, blocks)
            return
        self.steps.append((threading.current_thread(), len(messages)))
        self.before()
        super().absorb(messages, blocks)
        self.after()


class SignallingQueue(deque):  # type: ignore[type-arg]
    """Tells that somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = threading.Semaphore(0)

    def append(self, turn: object) -> None:
        super().append(turn)
        self.counted.release()


def led_while_others_wait(
    separate: Programs, leader_content: bytes, *others: bytes
) -> tuple[WatchedPrograms, Hashing, list[Hashing]]:
    """A thread leads, and within its first step all others come and wait; returns before the second step is over."""
    programs = WatchedPrograms(separate)
    lanes = Lanes(programs)
    queue = lanes._waiting = SignallingQueue()
    leader = Hashing(lanes, leader_content)
    waiting = [Hashing(lanes, content) for content in others]

    def first_step() -> None:
        programs.before = bool
        for each in waiting:
            each.start()
            assert queue.counted.acquire(timeout=ENOUGH_S)

    programs.before = first_step
    return programs, leader, waiting


def test_nine_threads_at_once_are_all_right_and_end(lanes: Lanes) -> None:
    threads = []
    for seed in range(9):
        source, pieces, end = random.Random(seed), [], 0
        while end < len(CONTENT) // 2:
            size = source.choice([1, 50, RATE_BYTES, 5_000, 70_000, 300_000, 1_000_000])
            pieces.append(memoryview(CONTENT)[end : end + size])
            end += size
        threads.append((Hashing(lanes, *pieces), expected(CONTENT[:end])))
    for each, _ in threads:
        each.start()
    assert [each.end() for each, _ in threads] == [digest for _, digest in threads]
    assert not lanes._groups
    assert not lanes._waiting


def test_leader_takes_others_along_and_hands_on_what_is_left(separate: Programs) -> None:
    short, long = CONTENT[: len(CONTENT) // 2], CONTENT
    programs, leader, [other] = led_while_others_wait(separate, short, long)
    leader.start()
    assert leader.end() == expected(short)
    assert other.end() == expected(long)
    assert programs.steps[0] == (leader.thread, 1)
    assert programs.steps[1] == (leader.thread, 2)
    assert programs.steps[-1] == (other.thread, 1)
    assert {thread for thread, count in programs.steps if count == 2} == {leader.thread}


def test_message_that_ends_first_is_woken_by_the_leader(separate: Programs) -> None:
    programs, leader, [other] = led_while_others_wait(separate, CONTENT, CONTENT[:200_000])

    def second_step() -> None:
        if len(programs.steps) == 3:
            assert other.end() == expected(CONTENT[:200_000])

    programs.after = second_step
    leader.start()
    assert leader.end() == expected(CONTENT)
    assert {thread for thread, _ in programs.steps} == {leader.thread}


def test_thread_that_finds_no_lane_leads_by_itself(separate: Programs) -> None:
    others = [CONTENT[size:] for size in range(LANES - 1)]
    programs, leader, waiting = led_while_others_wait(separate, CONTENT, *others)
    extra = Hashing(leader._lanes, CONTENT[LANES:])
    begin = programs.before

    def first_step() -> None:
        begin()
        programs.before = bool
        extra.start()
        assert extra.end() == expected(CONTENT[LANES:])

    programs.before = first_step
    leader.start()
    assert [each.end() for each in (leader, *waiting)] == [expected(each) for each in (CONTENT, *others)]
    # It has lanes to spare itself, so it takes those along for whom the first leader has not come back yet.
    assert (extra.thread, LANES) in programs.steps


@pytest.mark.parametrize("when", ["before", "after"])
def test_interrupted_leader_leaves_the_others_right(separate: Programs, when: str) -> None:
    others = [CONTENT[:200_000], CONTENT, CONTENT[:70_000]]
    programs, leader, waiting = led_while_others_wait(separate, CONTENT, *others)

    def interrupt() -> None:
        if len(programs.steps) == 2:
            raise InterruptionError

    begin = programs.before

    def first_step() -> None:
        begin()
        setattr(programs, when, interrupt)

    programs.before = first_step
    leader.start()
    assert leader.end() is None
    assert isinstance(leader.error, InterruptionError)
    assert [each.end() for each in waiting] == [expected(content) for content in others]
    assert not leader._lanes._groups


def test_nobody_waits_where_every_leader_fails(separate: Programs) -> None:
    programs, leader, waiting = led_while_others_wait(separate, CONTENT, CONTENT, CONTENT, CONTENT)

    def fail() -> None:
        raise InterruptionError

    programs.after = fail
    leader.start()
    assert [each.end() for each in (leader, *waiting)] == [None] * 4
    assert all(isinstance(each.error, InterruptionError) for each in (leader, *waiting))
    assert not leader._lanes._groups


def test_main_thread_waits_for_nobody(separate: Programs) -> None:
    programs, leader, _ = led_while_others_wait(separate, CONTENT)
    held, go_on = threading.Event(), threading.Event()

    def first_step() -> None:
        programs.before = bool
        held.set()
        assert go_on.wait(ENOUGH_S)

    programs.before = first_step
    leader.start()
    assert held.wait(ENOUGH_S)
    made = LaneHash(leader._lanes)
    made.update(CONTENT)
    assert made.digest() == expected(CONTENT)
    go_on.set()
    assert leader.end() == expected(CONTENT)


def test_wrong_program_for_one_or_for_several_is_noticed(separate: Programs, wrong_program: Program) -> None:
    assert are_right(separate)
    assert not are_right(Programs(wrong_program, separate._several))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keccak, "round_constants", lambda right=keccak.round_constants: [0, *right()[1:]])
        assert not are_right(Programs(separate._one, Program(LANES)))


def is_prepared() -> bool:
    return isinstance(sha3_256(), LaneHash)


def test_without_preparation_hashes_are_those_of_hashlib() -> None:
    assert type(sha3_256()) is type(hashlib.sha3_256())
    assert sha3_256(b"abc").digest() == expected(b"abc")


def test_machine_without_the_vectors_stays_with_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"sse2": True, "avx2": False, "neon": True})
    assert not prepare()
    assert not is_prepared()


def test_machine_that_llvm_does_not_know_stays_with_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("unknown")

    monkeypatch.setattr(llvm, "get_host_cpu_features", fail)
    assert not prepare()
    assert not is_prepared()


def test_installation_without_llvmlite_stays_with_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("keccak", "compiled", "lanes", "lane_hash"):
        monkeypatch.delitem(sys.modules, f"odf_node.sha3.{name}")
    for name in ("llvmlite", "llvmlite.ir", "llvmlite.binding"):
        monkeypatch.setitem(sys.modules, name, None)
    assert not prepare()
    assert not is_prepared()


@pytest.mark.parametrize("feature", ["avx2", "avx512vl"])
def test_machine_whose_hashes_come_out_wrong_stays_with_hashlib(
    monkeypatch: pytest.MonkeyPatch, separate: Programs, wrong_program: Program, feature: str
) -> None:
    features = {name: name == feature for name in ("avx2", "avx512vl")}
    made = {1: separate._one, LANES: separate._several}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(compiled, "Program", made.__getitem__)
    assert prepare()
    assert is_prepared()
    assert sha3_256(CONTENT).digest() == expected(CONTENT)
    monkeypatch.setattr(hashing, "_start_hash", hashlib.sha3_256)
    made[1 if feature == "avx2" else LANES] = wrong_program
    assert not prepare()
    assert not is_prepared()


def run(script: str) -> None:
    """Run a script in a process of its own: one with threads, such as this, must not fork."""
    beginning = f"""
        import ctypes, hashlib, os, sys, threading
        from odf_node.sha3 import hashing
        content = bytes(range(256)) * 4000
        right = hashlib.sha3_256(content).digest()

        def check():
            digests = []
            hash_it = lambda: digests.append(hashing.sha3_256(content).digest())
            threads = [threading.Thread(target=hash_it, daemon=True) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join({ENOUGH_S})
            assert digests == [right] * 3, digests
    """
    program = textwrap.dedent(beginning) + textwrap.dedent(script)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_worker_of_the_fork_server_hashes_in_lanes_whatever_threads_were_doing(separate: Programs) -> None:
    if Programs.find() is None:
        pytest.skip("this machine stays with hashlib")
    run(
        """
        from odf_node.handover.fork_server import load_commands
        load_commands()
        from odf_node.sha3.lanes import _Group
        lanes = hashing.sha3_256()._lanes
        check()
        # As where one thread leads, with lanes to spare, and another has the lock.
        lanes._groups.add(_Group([]))
        lanes._lock.acquire()
        if (child := os.fork()) == 0:
            try:
                check()
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


def test_process_that_may_make_no_code_stays_with_hashlib() -> None:
    run(
        """
        # Source: prctl(2), PR_SET_MDWE with PR_MDWE_REFUSE_EXEC_GAIN, which systemd's MemoryDenyWriteExecute sets.
        if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0:
            assert not hashing.prepare()
            check()
        """
    )
