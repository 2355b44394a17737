"""The thread that hashes what is received while it is written; commands that receive nothing do without its library."""

from concurrent.futures import ThreadPoolExecutor


def start_thread() -> ThreadPoolExecutor:
    """Make one, which begins with the first bytes."""
    return ThreadPoolExecutor(1, "hash-beside-write")
