"""The figures of the structure: what counts as an arrow against the layers, and that there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import house
from tools.house import MOST_MODULES, Layering, arrows_up, layerings

ROOT = Path(__file__).parents[2]
LAYERS = Layering(package="planner", layers=(("planning", "validation"), ("rates",), ("errors",)))


@pytest.mark.parametrize(
    ("module", "rank"),
    [("planner.planning.case", 0), ("planner.validation.score", 0), ("planner.errors", 2), ("reports.view", None)],
)
def test_a_module_stands_on_the_layer_of_its_folder(module, rank):
    assert LAYERS.rank(module) == rank


@pytest.mark.parametrize(
    ("module", "line", "against"),
    [
        ("planner.rates.terms", "from planner.planning.case import Case", True),
        ("planner.validation.score", "from planner.planning import case", True),
        ("planner.planning.case", "from planner.rates import terms", False),
        ("planner.planning.ranges", "from planner.planning.case import Case", False),
        ("planner.rates.terms", "def lazily():\n    import planner.validation.score", True),
    ],
)
def test_an_import_to_a_higher_layer_or_beside_it_counts(tmp_path, module, line, against):
    planted = tmp_path / "planted.py"
    planted.write_text(line, encoding="utf-8")
    others = ("planner.planning.case", "planner.rates.terms", "planner.validation.score")
    empty = tmp_path / "empty.py"
    empty.write_text("", encoding="utf-8")
    known = dict.fromkeys(others, empty) | {module: planted}

    assert bool(arrows_up(LAYERS, known)) is against


def test_only_contracts_that_order_the_folders_of_a_package_are_layerings():
    contracts = [
        {"type": "layers", "layers": ["mpplan", "planner"]},
        {"type": "layers", "containers": ["planner"], "layers": ["planning | validation", "rates"]},
        {"type": "forbidden"},
    ]

    assert layerings(contracts) == [Layering(package="planner", layers=(("planning", "validation"), ("rates",)))]


def test_the_house_has_no_arrow_up_and_no_crowded_folder():
    done = subprocess.run([sys.executable, "-m", "tools.house"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert "arrows against the layers: 0" in done.stdout
    assert max(house.sizes("planner").values()) <= MOST_MODULES
