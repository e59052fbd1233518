"""What the wheel holds, whose the package names are, and which rooms work without which packages."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("alerts", "collector", "dashboard", "store")

# Refuses the named packages as if they were not installed, then runs one console command.
WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
sys.argv[1:] = ["--help"]
from {room}.cli import main
main()
"""
HEAVY = {"altair", "cupti", "pandas", "pynvml", "streamlit", "torch", "vl_convert"}


def build(kind: str, project: Path, folder: Path) -> Path:
    """Build a wheel or an sdist the way pip would, without an environment of its own."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (built,) = folder.glob("kernelwatch-*")
    return built


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(name="wheel_names", scope="module")
def _wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return names_in(build("wheel", ROOT, tmp_path_factory.mktemp("wheel")))


def test_the_wheel_holds_our_packages_and_nothing_else(wheel_names: set[str]) -> None:
    roots = {name.partition("/")[0] for name in wheel_names}

    assert {root for root in roots if not root.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_holds_every_file_of_a_package(wheel_names: set[str]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()

    missing = {file for file in tracked if (ROOT / file).exists()} - wheel_names

    assert tracked
    assert missing == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_tells_type_checkers_that_a_package_is_typed(package: str, wheel_names: set[str]) -> None:
    assert f"{package}/py.typed" in wheel_names


def test_the_wheel_brings_the_migrations_of_the_store(wheel_names: set[str]) -> None:
    numbered = {path.name for path in (ROOT / "store/migrations").glob("*.sql")}

    assert numbered
    assert {f"store/migrations/{name}" for name in numbered} <= wheel_names


def test_the_wheel_carries_the_licence(wheel_names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


def test_a_wheel_built_from_the_source_distribution_is_the_same(
    wheel_names: set[str], tmp_path: Path
) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (project,) = (tmp_path / "source").iterdir()

    assert names_in(build("wheel", project, tmp_path / "wheel")) == wheel_names


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_claims_the_name_of_a_package(package: str) -> None:
    # An editable install lists no files, so it claims nothing; the installed wheel is checked
    # in continuous integration by scripts/check_wheel.py.
    assert set(importlib.metadata.packages_distributions().get(package, [])) <= {"kernelwatch"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_that_is_imported_is_the_one_in_this_checkout(package: str) -> None:
    command = f"import {package}; print({package}.__file__)"

    where = subprocess.run(
        [sys.executable, "-P", "-c", command], cwd="/", check=True, capture_output=True, text=True
    ).stdout

    assert Path(where.strip()) == ROOT / package / "__init__.py"


def test_the_distribution_must_not_be_uploaded_by_mistake() -> None:
    metadata = importlib.metadata.metadata("kernelwatch")

    assert "Private :: Do Not Upload" in metadata.get_all("Classifier", [])


@pytest.mark.parametrize("room", PACKAGES)
def test_a_command_answers_where_no_heavy_package_is_installed(room: str, tmp_path: Path) -> None:
    program = WITHOUT.format(absent=HEAVY, room=room)

    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert answer.stderr == ""
    assert answer.returncode == 0
    assert "Usage:" in answer.stdout
