"""Fixtures that are dear to make and shared by the whole run."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Half of what collecting costs is the rewriting of assertions: once for each file, not once for each process and run,
# also where PYTHONDONTWRITEBYTECODE is set, as in many containers.
sys.dont_write_bytecode = False

# Always the same examples; the deep ones look for new ones.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=15)
settings.register_profile("deep", derandomize=False, deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Homes of tests share keys: what one signed must not be remembered by another.
os.environ.setdefault("ODF_NODE_SIGNED_MARKS", "")


MEMORY = Path("/dev/shm")
NEEDED_BYTES = 3 * 1024**3  # a tenth of it is used at a time; the rest is for what tests write to fill a disk


def _work_in_memory() -> None:
    """Let the tests keep their files in memory where there is much of it: they sync some ten thousand times.

    ``TMPDIR`` says otherwise. What a run leaves is removed by the next one, so that failures can be looked into.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free < NEEDED_BYTES:
        return
    # A short name: the kernel allows 107 characters for the name of a socket.
    runs = MEMORY / f"odf-{os.getuid()}"
    runs.mkdir(mode=0o700, exist_ok=True)
    for run in runs.iterdir():
        # Also what a process of our own number left: numbers come round again, in containers at once.
        if run.name == str(os.getpid()) or not Path("/proc", run.name).exists():
            shutil.rmtree(run, ignore_errors=True)
    folder = runs / str(os.getpid())
    folder.mkdir()
    # Before anything else has to be done at the end, so after all of it.
    atexit.register(_give_back, folder)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # it is looked for again


def _give_back(folder: Path) -> None:
    if _ended_with == [0]:
        shutil.rmtree(folder, ignore_errors=True)


_ended_with: list[int] = []
_work_in_memory()


# Engines are prepared while these are tested. After them the slow folders come first, so that what is left at the end
# is small.
ENGINELESS = ("attacks", "simulation", "soak", "fuzz", "property", "integration", "unit")
ORDER = (
    "attacks", "simulation", "soak", "fuzz", "property", "conformance", "e2e", "escape", "fault", "integration", "unit",
)  # fmt: skip


def _folder(item: pytest.Item) -> str:
    """Return the kind of a test: its folder, which for tests of a plug-in lies below that of the plug-in."""
    parts = item.path.relative_to(Path(__file__).parent).parts
    return parts[2] if parts[0] == "plug_ins" else parts[0]


# What `make test` runs: all that needs neither Spark nor another implementation's programs, and of each of these files
# the first test: one for every class of Spark's derivatives and for every main job through real commands.
QUICK_FOLDERS = ("attacks", "simulation", "fuzz", "property", "conformance", "integration", "unit", "extension")
ONE_OF_EACH = (
    "test_as_of_joins.py",
    "test_daemon.py",
    "test_event_windows.py",
    "test_fusion_derivatives.py",
    "test_ingest_quarantine.py",
    "test_maintained_views.py",
    "test_map_transforms.py",
    "test_push.py",
    "test_python_front.py",
    "test_query.py",
    "test_reexecution.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of the tier."""
    parser.addoption("--quick", action="store_true", help="leave out what needs minutes: see QUICK_FOLDERS")


def _is_quick(item: pytest.Item, firsts: set[str]) -> bool:
    if item.path.name in ONE_OF_EACH and _folder(item) == "e2e":
        is_first = item.path.name not in firsts
        firsts.add(item.path.name)
        return is_first
    needs_more = item.get_closest_marker("spark") or item.get_closest_marker("peer")
    return _folder(item) in QUICK_FOLDERS and not needs_more


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tier, and order the folders."""
    if config.getoption("quick"):
        firsts: set[str] = set()
        chosen = [item for item in items if _is_quick(item, firsts)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen
    places = {folder: place for place, folder in enumerate(ORDER)}
    items.sort(key=lambda item: places.get(_folder(item), len(places)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let no test start an engine that is not prepared: somebody does it already, or it is done now, once."""
    if _folder(item) not in ENGINELESS or item.get_closest_marker("spark"):
        from support.warm_engine import prepared_engine

        prepared_engine()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember whether there is anything to look into."""
    _ended_with.append(int(exitstatus))


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
    reader.close()


@pytest.fixture(scope="module")
def light_engines() -> Iterator[None]:
    """One Arrow and one DataFusion for the commands of a module, whose tests are not about the start of engines."""
    from support.light_engines import sharing_light_engines

    with sharing_light_engines():
        yield


@pytest.fixture(autouse=True)
def close_stores() -> Iterator[None]:
    """Close the databases that a test has opened and left open, of which Python warns from 3.13 on."""
    from support.open_stores import closing_stores

    with closing_stores():
        yield


@pytest.fixture(scope="module")
def host_folder() -> Iterator[Path]:
    """A folder on the host's disk: one below ``/dev`` would be out of a sandbox's sight without anybody hiding it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="odf-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A folder for an engine session of a test's own, gone afterwards."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
