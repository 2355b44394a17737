"""One request from standard input, and its answer; see the package."""

import json
import resource
import sys
from typing import Final

from odf_node.adapters.mqtt_reader.reading import answer

_MEMORY_BYTES: Final = 1024**3  # guess: a message of 256 MiB, which is the largest there is, and copies of it

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    found = answer(json.load(sys.stdin))
    sys.stderr.write(json.dumps(found))
