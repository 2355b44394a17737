"""Entry point of the ``odf-node`` command."""

import atexit
import gc
import sys

from odf_node import cli

_NEW_OBJECTS = 20_000  # measured: loading modules makes objects that stay, and looking through them takes a tenth of it


def main() -> int:
    """Run one command in a process that exists for it."""
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)  # or all of them are looked through once more at the end, for nothing
    return cli.main.main()


if __name__ == "__main__":
    sys.exit(main())
