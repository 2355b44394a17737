"""One request from standard input, and its answer; see the package."""

import json
import resource
import sys
from typing import Final

from odf_node.adapters.bucket_reader.reading import answer

_MEMORY_BYTES: Final = 2 * 1024**3  # guess: the client takes 0.5 GiB of addresses, with many cores more

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    found = answer(json.load(sys.stdin), sys.stdout.buffer)
    sys.stdout.flush()
    sys.stderr.write(json.dumps(found))
