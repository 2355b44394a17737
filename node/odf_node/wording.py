"""Numbers of things and names of rules, as people say them."""


def count_of(number: int, noun: str) -> str:
    """Say how many there are: ``1 row``, ``47,564 rows``; ``noun`` is one whose plural ends in ``s``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rule_in_words(rule: str) -> str:
    """Write a rule for people: ``HEAD-4 signed-by-the-dataset-key`` is "signed by the dataset key (HEAD-4)"."""
    clause, _, name = rule.partition(" ")
    words = name.replace("-", " ").replace("re executed", "re-executed")
    return f"{words} ({clause})" if name else rule
