"""What an installation takes: the wheel into a fresh environment by pip, then each extra; disk, time, processor time.

Needs a package index or what pip has kept of one. The first installation fills that cache and is not told.
"""

import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BUILD = "import os, sys; from hatchling.build import build_wheel; os.chdir(sys.argv[1]); build_wheel(sys.argv[2])"


def size_mb(folder: Path) -> float:
    return sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_symlink()) / 1e6


def install(environment: Path, what: str) -> str:
    began, used = time.perf_counter(), used_s()
    words = [environment / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
    subprocess.run(words, check=True)
    return f"{time.perf_counter() - began:.0f} s, {used_s() - used:.0f} s of a processor"


def used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", BUILD, REPOSITORY, folder], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB, {len(zipfile.ZipFile(wheel).namelist())} files")
        for is_reported in (False, True):
            environment = Path(folder) / f"told-{is_reported}"
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            for extra in ("", *extras):
                before = size_mb(environment)
                took = install(environment, f"{wheel}[{extra}]" if extra else str(wheel))
                if is_reported:
                    name = f"odf-node[{extra}], beside it" if extra else "odf-node"
                    print(f"{name}: {size_mb(environment) - before:,.0f} MB, {took}")
            if is_reported:
                (packages,) = environment.glob("lib/python3.*")
                sizes = {each.name: size_mb(each) for each in (packages / "site-packages").iterdir() if each.is_dir()}
                largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:4]
                print("most of it: " + ", ".join(f"{name} {sizes[name]:,.0f} MB" for name in largest))


if __name__ == "__main__":
    main()
