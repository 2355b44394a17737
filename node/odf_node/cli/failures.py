"""Where a failure arose, for whoever asked for it."""

import logging
import traceback


def show_traceback(*, is_wanted: bool) -> None:
    """Log where the failure that is being handled arose, and print it where ``is_wanted``."""
    logging.getLogger("odf_node.failures").debug("failed:", exc_info=True)
    if is_wanted:
        traceback.print_exc()
