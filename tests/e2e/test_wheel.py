"""What is installed is what is here: the wheel is built offline, looked into, installed elsewhere, and run."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {"odf_protocol": "protocol", "odf_engines": "engines", "odf_node": "node"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    program = "import os, sys; from hatchling.build import build_wheel; os.chdir(sys.argv[1]); build_wheel(sys.argv[2])"
    subprocess.run([sys.executable, "-c", program, REPOSITORY, folder], check=True, capture_output=True, timeout=400)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=400)
    program = folder / "bin" / "python"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", program, "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-index", wheel,
        ],
        check=True, capture_output=True, timeout=400,
    )  # fmt: skip
    return program


def run(*command: str | Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command, env={**clean, **environment}, cwd="/", capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_every_module_of_the_three_packages_and_nothing_else(wheel: Path) -> None:
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
    assert {f"{package}/py.typed" for package in PACKAGES} <= files
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_installed_program_tells_its_version_without_its_dependencies(python: Path) -> None:
    from odf_node import __version__

    assert run(python.parent / "odf-node", "--version") == f"odf-node {__version__}\n"
    assert "pull" in run(python.parent / "odf-node", "--help")


def test_installed_protocol_decides_without_arrow_yaml_or_network(python: Path) -> None:
    program = (
        "import odf_protocol, odf_protocol.multihash as m; print(m.Multihash.of_sha3_256(b''), odf_protocol.__file__)"
    )
    digest, path = run(python, "-c", program).split()
    assert digest == "f1620a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"
    assert Path(path).is_relative_to(python.parents[1])


def test_installed_node_works_with_the_dependencies_beside_it(python: Path, tmp_path: Path) -> None:
    dependencies = Path(__import__("msgspec").__file__).parents[1]
    manifest = REPOSITORY / "examples" / "covid" / "countries.daily.yaml"
    command = python.parent / "odf-node"
    # Behind the environment's own packages, and without the editable installation that lies among the dependencies.
    environment = {"PYTHONPATH": str(dependencies), "ODF_NODE_HOME": str(tmp_path / "home")}
    assert "added root dataset countries.daily" in run(command, "add", manifest, **environment)
    assert "countries.daily" in run(command, "list", **environment)
    assert "spark" in run(command, "engine", "list", **environment)
    where = run(python, "-c", "import odf_node; print(odf_node.__file__)", **environment)
    assert Path(where.strip()).is_relative_to(python.parents[1])
