"""One request from standard input, and its answer; see the package."""

import json
import resource
import sys
from typing import Final

from odf_node.adapters.ftp_reader.reading import answer

_MEMORY_BYTES: Final = 256 * 1024**2  # guess: several times what this program takes

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    found = answer(json.load(sys.stdin), sys.stdout.buffer)
    sys.stdout.flush()
    sys.stderr.write(json.dumps(found))
