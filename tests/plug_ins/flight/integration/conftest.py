"""A node with secrets, and its Flight port, for the tests of a module."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.flight_node import FlightNode, serving_flight
from support.secretive_node import SecretiveNode


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path_factory.mktemp("flight") / "node")
    with closing(made.node):
        yield made


@pytest.fixture(scope="module")
def served(made: SecretiveNode) -> Iterator[FlightNode]:
    with serving_flight(made) as served:
        yield served
