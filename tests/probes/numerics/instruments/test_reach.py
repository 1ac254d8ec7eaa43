"""What a precision reaches in the built-in decoder, whose matrices are known, looked at once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.reach import reach  # noqa: E402 - it needs torch
from probes.numerics.instruments.time import Plain, count_of, missing  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from tests.probes.numerics.planted import PLACE  # noqa: E402


def test_autocast_reaches_all_but_the_tables_and_a_scaled_recipe_not_the_last_layer_either():
    kept: dict[str, Plain] = {}

    def keep(key, compute):
        return kept.setdefault(key, compute()) if key not in kept else kept[key]

    for _ in range(2):
        bf16, fp8 = (reach(find_task("char-lm"), PLACE, lower_by_id(name), keep) for name in ("bf16", "fp8"))

    # two blocks of four linear layers, the head, and the tables of characters and positions
    assert bf16 == {"lowered_matrices": 9, "matrices": 11, "why_not_applied": None}
    assert fp8 == {"lowered_matrices": 8, "matrices": 11, "why_not_applied": None}
    assert set(kept) == {"bf16/applied", "fp8/applied"}


def test_what_is_missing_cannot_be_read_as_done():
    assert missing(2, 3, "seeds") == "2 of 3 seeds missing"
    assert [count_of(number, "step") for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
