"""Classes of the Java side, by name. Every dot costs a question to Java, so each class is looked up once."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pyspark import SparkContext


@cache
def java_class(name: str) -> Any:
    """Return a Java class by its full name; call it to make an object, or call its static methods."""
    found: Any = SparkContext._jvm  # noqa: SLF001 - has no public name
    for part in name.split("."):
        found = getattr(found, part)
    return found


def scala_object(name: str) -> Any:
    """Return the one instance of an object of Scala, which stands in a field of its class; the name ends in ``$``."""
    return getattr(java_class(name), "MODULE$")


def scala_sequence(values: Iterable[Any]) -> Any:
    """Return values as a sequence of Scala's."""
    joined = java_class("java.util.ArrayList")()
    for value in values:
        joined.add(value)
    return java_class("org.apache.spark.api.python.PythonUtils").toSeq(joined)
