"""What `pip install` brings: the wheel, in an empty environment, does the main job from another directory."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("planner", "probes", "pricing", "reports", "mpplan")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def shell(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, without this checkout on its path, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPPLAN"))}
    environment |= {"XDG_DATA_HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd)}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    shell(*PIP, "--quiet", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the wheel and what it depends on, nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    shell(*PIP, "--quiet", "--python", python, "install", "--no-compile", "--retries", "10", wheel, cwd=folder)
    return python.parent


def test_the_wheel_holds_the_five_packages_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}

    assert tops == set(ROOMS)
    files = [name.split("/")[-1] for name in names if name.endswith(".py")]
    assert [name for name in files if name.startswith("test") or name == "conftest.py"] == []


def test_the_wheel_holds_every_file_of_the_packages(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert {name for name in files if name.endswith((".csv", ".toml"))} != set()
    assert files - names == set()


def test_the_readme_builds_and_installs_it_like_this():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "pip wheel --no-deps -w dist ." in readme  # the fixture, which takes the build tools that are there
    assert "pip install dist/mpplan-*.whl" in readme


def test_an_environment_is_activated_as_the_readme_says(installed, tmp_path):
    line = ". .venv/bin/activate"
    (tmp_path / ".venv").symlink_to(installed.parent)

    assert f"\n{line}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert shell("sh", "-c", f"{line} && command -v mpplan && mpplan --version", cwd=tmp_path).startswith(
        str(installed)
    )


def test_the_installed_program_does_the_main_job_from_another_directory(installed, tmp_path):
    main_job = ("estimate", "--params", "70B", "--precision", "fp8", "--report", "plan.html")
    table = shell(installed / "mpplan", *main_job, cwd=tmp_path)

    assert "fp8" in table.lower()
    assert "bf16" in table.lower()
    assert (tmp_path / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_public_api_works_where_it_is_installed(installed, tmp_path):
    code = "from mpplan import estimate, to_document; print(to_document(estimate(params='7B', gpus=8))['schema'])"

    assert shell(installed / "python", "-c", code, cwd=tmp_path) == "mpplan.estimate/2\n"


def test_the_install_brings_no_gpu_library(installed, tmp_path):
    listed = shell(*PIP, "--python", installed / "python", "list", "--format=freeze", cwd=tmp_path).lower()

    assert [
        name for name in ("torch", "transformers", "torchao", "pyarrow", "gpuhunt") if f"\n{name}==" in listed
    ] == []
