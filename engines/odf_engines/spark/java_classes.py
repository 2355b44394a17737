"""Classes of the Java side, by name. Every dot costs a question to Java, so each class is looked up once."""

from functools import cache
from typing import Any

__all__ = ["java_class"]


@cache
def java_class(name: str) -> Any:
    """Return a Java class by its full name; call it to make an object, or call its static methods."""
    from pyspark import SparkContext

    found: Any = SparkContext._jvm  # noqa: SLF001 - has no public name
    for part in name.split("."):
        found = getattr(found, part)
    return found
