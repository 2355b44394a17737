from pathlib import Path

import pytest

from support.stores import ADAPTERS, Store


@pytest.fixture(params=ADAPTERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return ADAPTERS[request.param](tmp_path)
