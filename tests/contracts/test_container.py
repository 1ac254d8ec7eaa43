"""The container file, as far as it can be judged without a container: targets, sources, wheel, extras, bases, user.

What was built of it, and on what, is in docs/installing.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/installing.md").read_text(encoding="utf-8")


@dataclass(slots=True)
class Stage:
    """One stage of the file."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def of(self, instruction: str) -> list[str]:
        """The arguments of every such instruction."""
        return [words for name, words in self.steps if name == instruction]


def parsed() -> dict[str, Stage]:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    stages: dict[str, Stage] = {}
    stage = None
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        instruction, words = line.split(maxsplit=1)
        if instruction == "FROM":
            base, _, name = words.split()
            stage = stages[name] = Stage(name=name, base=base)
        else:
            assert stage is not None
            stage.steps.append((instruction, words))
    return stages


STAGES = parsed()
BASES = {stage.base for stage in STAGES.values()} - set(STAGES)


def settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def all_of(name: str, instruction: str) -> list[str]:
    """The instruction in a stage and in those that it is made from, the last one last."""
    stage = STAGES[name]
    return [*(all_of(stage.base, instruction) if stage.base in STAGES else []), *stage.of(instruction)]


def test_the_targets_of_the_page_exist_and_plain_build_makes_the_core():
    assert set(re.findall(r"--target (\S+)", PAGE)) == {"core", "probe"} <= set(STAGES)
    assert list(STAGES)[-1] == "core"


def test_a_stage_is_made_from_an_earlier_one_or_from_an_image_of_a_version():
    names = list(STAGES)

    assert [s.name for s in STAGES.values() if s.base in STAGES and names.index(s.base) >= names.index(s.name)] == []
    assert [base for base in BASES if not re.fullmatch(r"docker\.io/library/python:\d+\.\d+-slim-\w+", base)] == []


def test_the_python_of_the_image_is_one_that_the_package_takes():
    (version,) = {tuple(map(int, re.search(r":(\d+)\.(\d+)", base).groups())) for base in BASES}
    least = tuple(map(int, re.fullmatch(r">=(\d+)\.(\d+)", settings()["project"]["requires-python"]).groups()))

    assert version >= least


def copied() -> list[str]:
    words = [words.split() for stage in STAGES.values() for words in stage.of("COPY") if "--from" not in words]
    return [source for line in words for source in line[:-1]]


def test_what_is_copied_exists_and_is_all_that_the_wheel_is_made_of():
    project = settings()
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    metadata = {"README.md", *project["project"]["license-files"], "pyproject.toml"}
    needed = {*wheel, *metadata, project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]}

    assert [source for source in copied() if not (ROOT / source).exists()] == []
    assert set(copied()) == needed


def test_a_wheel_can_be_made_of_what_is_copied(tmp_path):
    context, wheels = tmp_path / "context", tmp_path / "wheels"
    for source in copied():
        target = context / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)
    make = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(context)]
    done = subprocess.run(make, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.suffix for path in wheels.iterdir()] == [".whl"]


def test_the_context_holds_what_is_copied_and_nothing_else():
    rules = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
    ]
    sent = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}

    assert rules[0] == "*"
    assert sent == set(copied())
    assert any(fnmatch("planner/__pycache__", rule) for rule in rules[1:])


def test_the_extras_exist_and_only_the_probe_has_torch():
    runs = {name: " ".join(stage.of("RUN")) for name, stage in STAGES.items()}
    extras = {name: re.findall(r"\[([\w,]+)\]", text) for name, text in runs.items()}

    assert {name for name, matches in extras.items() if matches} == {"probe"}
    assert set(extras["probe"][0].split(",")) <= set(settings()["project"]["optional-dependencies"])
    assert {name for name, text in runs.items() if "torch" in text.lower()} == {"probe"}


@pytest.mark.parametrize("target", ["core", "probe"])
def test_a_target_runs_the_program_and_not_as_root(target):
    script = settings()["project"]["scripts"]

    assert all_of(target, "USER")[-1] == "mpplan"
    assert all_of(target, "ENTRYPOINT") == ['["mpplan"]']
    assert "mpplan" in script
    assert any("useradd" in words for words in all_of(target, "RUN"))


def test_the_page_and_the_readme_show_commands_that_the_file_can_serve():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    mounted = {place for text in (PAGE, readme) for place in re.findall(r'-v "\$PWD:(\S+)"', text)}
    arguments = set(re.findall(r"--build-arg (\w+)=", PAGE))

    assert mounted == {all_of("core", "WORKDIR")[-1]}
    assert arguments <= {words.split("=")[0] for stage in STAGES.values() for words in stage.of("ARG")}
