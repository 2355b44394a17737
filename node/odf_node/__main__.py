"""Entry point of the ``odf-node`` command."""

import sys

from odf_node.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
