"""What the README tells a reader to type works, in its order; the flags that any page types exist."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tools.pages.shell import Result, Shell

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SURFACE = (ROOT / "tests/contracts/cli_surface.txt").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

ELSEWHERE = {
    "python3 -m venv .venv": "tests/run.sh and tests/contracts/test_wheel.py set up environments",
    "sh tests/run.sh": "this run",
    ". .venv/bin/activate": "tests/contracts/test_wheel.py",
    "pip install '.[probe]'": "tests/run.sh installs this extra",
    "pip wheel --no-deps -w dist .": "tests/contracts/test_wheel.py",
    "pip install dist/mpplan-*.whl": "tests/contracts/test_wheel.py",
    "docker build": "tests/contracts/test_container.py reads the file; docs/installing.md says what was built",
    "docker run": "as docker build",
    "mpplan probe": "needs a GPU; tests/mpplan/commands and tests/contracts/test_fake_gpu.py run it",
}
"""Commands of the README that are not run here, by how they begin, and where they are."""

AWAITED = ("mpplan compare run.log --plan plan.json",)
"""Commands that the README shows before the program has them. The test says when one works: its entry goes."""

OWN_FILES = {
    "config.json": json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2560, "intermediate_size": 9728,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": True,
    }),
    "run.log": "".join(
        f"[titan] 2026-11-20 08:{step:02}:00,000 - root - INFO - step: {step}  loss: {9 - step / 10:.4f}  "
        "memory: 61.20GiB(77.00%)  tps: 910  tflops: 390.00  mfu: 19.71%\n"
        for step in range(1, 41)
    ),
}  # fmt: skip
"""What a reader has: the shape of a model, the log of a run (as torchtitan prints it)."""
OWN_RUN = {
    "id": "ours-1", "model": "llama-3.1-8b", "precision": "bf16", "gpu": "h100-sxm5-80gb", "n_gpus": "64",
    "seq_len": "8192", "global_batch_seqs": "128", "metric": "tokens_per_s_per_gpu", "value": "6900",
}  # fmt: skip
"""The row that a reader writes into the template of runs."""


def commands(text: str) -> list[str]:
    """The lines of the shell blocks, comments and blank lines left out."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", "".join(blocks)).splitlines()
    return [line for line in (re.sub(r"\s+#.*", "", line).strip() for line in lines) if line and line[0] != "#"]


def is_elsewhere(command: str) -> bool:
    return any(command.startswith(start) for start in ELSEWHERE)


HERE = [command for command in commands(README) if not is_elsewhere(command)]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Every command of the README that runs here, in its order, in one folder."""
    shell = Shell(tmp_path_factory.mktemp("reader"))
    for name, text in OWN_FILES.items():
        (shell.folder / name).write_text(text, encoding="utf-8")
    results = {}
    for command in HERE:
        results[command] = shell.run(command)
        if "--template" in command:
            runs = shell.folder / "my-runs.csv"
            head = runs.read_text(encoding="utf-8").splitlines()[-1].split(",")
            with runs.open("a", encoding="utf-8") as file:
                file.write(",".join(OWN_RUN.get(column, "") for column in head) + "\n")
    return results


@pytest.mark.parametrize(
    "command",
    HERE,
)
def test_a_command_of_the_readme_works_as_typed(typed, command):
    result = typed[command]

    # `doctor` says with 4 that this machine cannot measure everything
    assert result.code in ((0, 4) if command == "mpplan doctor" else (0,)), result.err


def test_every_command_is_run_here_or_says_where():
    shown = commands(README)

    assert [start for start in ELSEWHERE if not any(command.startswith(start) for command in shown)] == []
    assert [command for command in HERE if not command.startswith("mpplan ")] == []


def test_the_python_of_the_readme_runs(tmp_path):
    (code,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "plan.py").write_text(code, encoding="utf-8")
    result = Shell(tmp_path).run(f'"{sys.executable}" plan.py')

    assert result.code == 0, result.err
    assert "h100-sxm5-80gb" in result.out


def test_the_readme_can_be_read_in_one_go():
    assert README.count("\n") <= 230


KNOWN = {
    (line.rsplit(" ", 1)[0], flag)
    for line in SURFACE.splitlines()
    for flag in re.findall(r"--[a-z][a-z0-9-]*", line.rsplit(" ", 1)[1])
}
"""Commands with each of their flags."""


def flags_of(line: str) -> set[tuple[str, str]]:
    """The command of a line with each of its flags."""
    words = line.split("|")[0].split()
    names = {command for command, _ in KNOWN}
    begins = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    command = next((begin for begin in begins if begin in names), words[0])
    return {(command, flag) for flag in re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", line.split("|")[0])}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_flag_that_a_page_types_exists(path):
    """In shell blocks and at prompts, of the program's own commands."""
    text = path.read_text(encoding="utf-8")
    prompts = re.findall(r"^\$ (mpplan .*)$", text, flags=re.MULTILINE)
    own = [line for line in [*commands(text), *prompts] if line.startswith("mpplan ") and line not in AWAITED]
    shown = set().union(*(flags_of(line) for line in own))

    assert {(command, flag) for command, flag in shown - KNOWN if flag not in ("--help", "--version")} == set()
