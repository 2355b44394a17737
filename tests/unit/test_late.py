"""Packages whose modules are loaded when they are first used."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_protocol.late import late_modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of one sound module and one that needs what is not installed."""
    folder = tmp_path / "shelf_of_late"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "sound.py").write_text("answer = 42\n")
    (folder / "lacking.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder.name
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def test_module_is_loaded_when_it_is_first_asked_for(package: str) -> None:
    load = late_modules(package)
    assert f"{package}.sound" not in sys.modules
    assert load("sound").answer == 42


def test_what_is_no_module_is_no_attribute(package: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        late_modules(package)("other")


def test_module_that_lacks_a_library_says_which(package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        late_modules(package)("lacking")
