"""What is installed is what is here: the wheel is built offline, looked into, installed elsewhere, and run."""

import zipfile
from pathlib import Path

import pytest

from support.installed import REPOSITORY, build_wheel, install_alone, run

PACKAGES = {
    path.name: path.parent.name
    for path in sorted(REPOSITORY.glob("*/odf_*"))
    if path.parent.name in {"protocol", "engines", "node"}
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and nothing else."""
    return install_alone(wheel, tmp_path_factory.mktemp("installed"))


def must(*command: str | Path, **environment: str) -> str:
    done = run(*command, **environment)
    assert done.code == 0, done.err
    return done.out


def test_wheel_holds_every_module_of_all_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = {name for name in names if ".dist-info/" not in name}
    expected = {
        f"{package}/{path.relative_to(REPOSITORY / folder / package)}"
        for package, folder in PACKAGES.items()
        for path in (REPOSITORY / folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(expected) > 100
    assert files == expected
    assert {f"{package}/py.typed" for package in ("odf_protocol", "odf_engines", "odf_node")} <= files
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_installed_program_tells_its_version_without_its_dependencies(python: Path) -> None:
    from odf_node import __version__

    assert must(python.parent / "odf-node", "--version") == f"odf-node {__version__}\n"


def test_installed_protocol_decides_without_arrow_yaml_or_network(python: Path) -> None:
    program = (
        "import odf_protocol, odf_protocol.multihash as m; print(m.Multihash.of_sha3_256(b''), odf_protocol.__file__)"
    )
    digest, path = must(python, "-c", program).split()
    assert digest == "f1620a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"
    assert Path(path).is_relative_to(python.parents[1])


def test_installed_node_works_with_the_dependencies_beside_it(python: Path, tmp_path: Path) -> None:
    dependencies = Path(__import__("msgspec").__file__).parents[1]
    manifest = REPOSITORY / "examples" / "covid" / "countries.daily.yaml"
    command = python.parent / "odf-node"
    # Behind the environment's own packages, and without the editable installation that lies among the dependencies.
    environment = {"PYTHONPATH": str(dependencies), "ODF_NODE_HOME": str(tmp_path / "home")}
    assert "added root dataset countries.daily" in must(command, "add", manifest, **environment)
    assert "countries.daily" in must(command, "list", **environment)
    assert "spark" in must(command, "engine", "list", **environment)
    where = must(python, "-c", "import odf_node; print(odf_node.__file__)", **environment)
    assert Path(where.strip()).is_relative_to(python.parents[1])
