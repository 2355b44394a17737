"""How many columns of a terminal letters beyond ASCII take: a library that takes as long to load as --version."""

from wcwidth import width

__all__ = ["width"]
