"""What is not imported: the price of a quick answer. `benchmarks/startup.py` measures seconds; none are asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "torch",
    "pandas",
    "rich",
    "jinja2",
    "transformers",
    "torchao",
    "pynvml",
    "pyarrow",
    "gpuhunt",
    "scipy",
    "pydantic",
}
NETWORK = {"socket", "urllib.request", "http.client", "ssl"}
PROGRAM = """
import json, sys
from mpplan.app import main
code = main(sys.argv[1:])
sys.stderr.write(json.dumps([code, sorted(sys.modules)]))
"""


def modules(folder: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
    )
    code, names = json.loads(done.stderr)

    assert code == 0, done.stdout
    return set(names)


def test_help_imports_no_command_and_not_even_numpy(tmp_path):
    loaded = modules(tmp_path, "--help")

    assert loaded & (HEAVY | NETWORK | {"numpy"}) == set()
    assert [name for name in loaded if name.startswith("mpplan.commands.")] == []


def test_a_recipe_for_a_cluster_is_written_without_torch(tmp_path):
    loaded = modules(tmp_path, "probe", "--recipe", "slurm", "--partition", "gpu", "--quiet")

    assert loaded & {"torch", "torchao", "transformers", "pandas", "pynvml"} == set()


def test_estimate_imports_neither_torch_nor_pandas_nor_a_network(tmp_path):
    loaded = modules(tmp_path, "estimate", "--params", "7B", "--precision", "fp8", "--quiet")

    assert loaded & (HEAVY | NETWORK) == set()


ON_REQUEST = {
    "tomllib",
    "pricing.files.toml_file",
    "pricing.contracts.own_file",
    "pricing.contracts.quote_file",
    "pricing.contracts.beside",
    "pricing.place.tariff",
    "pricing.sources.live_grid",
    "pricing.answer.power_limits",
    "pricing.exports",
    "pricing.exports.audit",
    "pricing.exports.bill_table",
}
"""What only a flag or another command brings."""


def test_estimate_reads_no_file_about_money_that_nobody_named(tmp_path):
    assert modules(tmp_path, "estimate", "--params", "7B", "--gpus", "8", "--quiet") & ON_REQUEST == set()

    (tmp_path / "own.toml").write_text("", encoding="utf-8")
    loaded = modules(tmp_path, "estimate", "--params", "7B", "--gpus", "8", "--own", "own.toml", "--quiet")
    assert loaded & ON_REQUEST == {"tomllib", "pricing.files.toml_file", "pricing.contracts.own_file"}


def test_the_report_brings_its_template_engine_and_nothing_else(tmp_path):
    loaded = modules(tmp_path, "estimate", "--params", "7B", "--gpus", "8", "--report", "plan.html", "--quiet")

    assert loaded & (HEAVY | NETWORK) == {"jinja2"}
    assert (tmp_path / "plan.html").is_file()


@pytest.mark.parametrize("command", ["gpus", "models"])
def test_a_listing_imports_nothing_heavy(tmp_path, command):
    assert modules(tmp_path, command) & (HEAVY | NETWORK) == set()


def test_importing_the_package_imports_nothing_else(tmp_path):
    code = "import sys, mpplan; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )

    assert set(done.stdout.split()) & (HEAVY | NETWORK | {"numpy", "typer", "planner"}) == set()
