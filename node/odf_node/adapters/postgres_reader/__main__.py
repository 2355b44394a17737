"""One request from standard input, and its answer; see the package."""

import json
import resource
import sys
from typing import Final

from odf_node.adapters.postgres_reader.reading import answer

_MEMORY_BYTES: Final = 1024**3  # guess: this program takes 0.2 GiB, and a row of 16 MiB is in memory some five times

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    found = answer(json.load(sys.stdin), sys.stdout.buffer)
    sys.stdout.flush()
    sys.stderr.write(json.dumps(found))
