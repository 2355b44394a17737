"""Telling the supervisor how the daemon is doing, where there is one that listens (systemd's protocol).

Source: sd_notify(3).
"""

import os
import socket
import time
from collections.abc import Mapping


def notify_supervisor(environment: Mapping[str, str], *states: str) -> bool:
    """Send states such as ``READY=1``; False where nobody listens. Never fails: the daemon serves all the same."""
    address = environment.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notifier:
            notifier.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            notifier.sendall("\n".join(states).encode())
    except OSError:
        return False
    return True


def reloading_states() -> tuple[str, ...]:
    """Give what is said when a reload begins; ``READY=1`` ends it."""
    return ("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def process_memory_bytes() -> float | None:
    """Return the resident memory of this process; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - read at every scrape
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def open_descriptors() -> float | None:
    """Return how many descriptors this process has open; None where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208 - without the one of this listing
    except OSError:
        return None
