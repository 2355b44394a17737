"""Fixtures that are dear to make and shared by the whole run."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("deep", derandomize=False, deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Commands that tests run leave no warm engine behind; the tests about warm engines ask for one.
# Homes of tests share keys: what one signed must not be remembered by another.
os.environ.setdefault("ODF_NODE_SIGNED_MARKS", "")
os.environ.setdefault("ODF_NODE_ENGINE_IDLE_S", "0")


@pytest.fixture(scope="session")
def spark_engine():  # type: ignore[no-untyped-def]
    """The engine, with the class-data archive that makes every start of it shorter."""
    from support.warm_engine import prepared_engine

    return prepared_engine()


@pytest.fixture(scope="session")
def spark_session():  # type: ignore[no-untyped-def]
    """One warm engine in its sandbox for all tests of this process; every request has a Spark session of its own."""
    from support.warm_engine import warm_session

    return warm_session()


@pytest.fixture(scope="session", autouse=True)
def slice_reader() -> Iterator[None]:
    """One process that reads slices for all tests of this process."""
    from support.slice_reader import keep_one_reader

    reader = keep_one_reader()
    yield
    reader.end()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A folder for an engine session of a test's own, gone afterwards."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
