"""Numbers of things, as people say them."""


def count_of(number: int, noun: str) -> str:
    """Say how many there are: ``1 row``, ``47,564 rows``; ``noun`` is one whose plural ends in ``s``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
