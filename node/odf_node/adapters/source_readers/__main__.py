"""One request from standard input, and its answer; see the package."""

import importlib
import json
import resource
import sys
from typing import Final

_MEMORY_BYTES: Final = {
    "bucket": 2 * 1024**3,  # guess: the client takes 0.5 GiB of addresses, with many cores more
    "ftp": 256 * 1024**2,  # guess: several times what this program takes
    "mqtt": 1024**3,  # guess: a message of 256 MiB, which is the largest there is, and copies of it
    "postgres": 1024**3,  # guess: this program takes 0.2 GiB, and a row of 16 MiB is in memory some five times
}

if __name__ == "__main__":
    name = sys.argv[1]
    reader = importlib.import_module(f"odf_node.adapters.source_readers.{name}")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES[name],) * 2)
    found = reader.answer(json.load(sys.stdin), sys.stdout.buffer)
    sys.stdout.flush()
    sys.stderr.write(json.dumps(found))
