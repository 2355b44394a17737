"""How fast threads hash with SHA3-256 at the same time: ``hashlib``, and several messages at once.

A megabyte of each is what one second of processor time makes of all threads together, so another process does not
disturb much; on the wall two processors do twice as much of ``hashlib``.

Run: ``python tests/benchmarks/bench_sha3_lanes.py [megabytes of each thread]``
"""

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable

from odf_node.sha3.hashing import Hash, prepare, sha3_256

PIECE_BYTES = 2 * 1024 * 1024
ROUNDS = 5


def hash_in_threads(start: Callable[[], Hash], contents: list[memoryview]) -> tuple[float, float]:
    """Hash each content in a thread of its own; return the MB of a second of processor time and of one on the wall."""
    digests: dict[int, bytes] = {}

    def work(number: int, content: memoryview) -> None:
        made = start()
        for at in range(0, len(content), PIECE_BYTES):
            made.update(content[at : at + PIECE_BYTES])
        digests[number] = made.digest()

    threads = [threading.Thread(target=work, args=each) for each in enumerate(contents)]
    used_s, begun_s = time.process_time(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used_s, passed_s = time.process_time() - used_s, time.perf_counter() - begun_s
    assert digests == {number: hashlib.sha3_256(content).digest() for number, content in enumerate(contents)}
    megabytes = sum(map(len, contents)) / 1e6
    return megabytes / used_s, megabytes / passed_s


def main() -> None:
    size_bytes = int(sys.argv[1] if len(sys.argv) > 1 else 50) * 1_000_000
    begun_s = time.process_time()
    if not prepare():
        print("this machine or installation stays with hashlib")
        return
    print(f"prepared in {time.process_time() - begun_s:.2f} s; MB per second of processor time (on the wall)")
    content = memoryview(os.urandom(size_bytes + 8))
    for count in (1, 2, 3, 4, 8):
        contents = [content[at : at + size_bytes] for at in range(count)]
        best = [
            tuple(max(each) for each in zip(*(hash_in_threads(start, contents) for _ in range(ROUNDS)), strict=True))
            for start in (hashlib.sha3_256, sha3_256)
        ]
        (plain, plain_wall), (lanes, lanes_wall) = best
        print(
            f"{count} threads   hashlib {plain:5.0f} ({plain_wall:5.0f})   lanes {lanes:5.0f} ({lanes_wall:5.0f})   "
            f"{lanes / plain:.1f} x"
        )


if __name__ == "__main__":
    main()
