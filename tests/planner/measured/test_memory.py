"""Context and fragmentation from the memory of whole steps, and where a plan uses them."""

from __future__ import annotations

import pytest

from planner.measured.device import measured_rates
from planner.measured.memory import context_bytes, fragmentation_ratios
from planner.measured.terms import measured_terms
from planner.rates.ladder import resolve_rates
from planner.records.measurement import Measurement
from tests.planner.build import cluster, recipe
from tests.planner.recorded import a_measurement

GIB = 2**30
CONTEXT = 520.0 * 2**20


def step(number: int, reserved_gib: float, allocated_gib: float = 10.0, **changes: object) -> Measurement:
    """A block with its memory (made up)."""
    values: dict[str, object] = {
        "probe_id": f"block/{number}",
        "kind": "block",
        "memory_allocated_peak_bytes": allocated_gib * GIB,
        "memory_reserved_peak_bytes": reserved_gib * GIB,
        "memory_context_bytes": CONTEXT,
    }
    return a_measurement(**(values | changes))


def test_fragmentation_is_what_is_reserved_beyond_what_is_allocated_by_mode() -> None:
    points = [step(1, 10.3), step(2, 10.5), step(3, 10.4), step(4, 11.0, compiled=True)]

    ratios = fragmentation_ratios(points)

    assert ratios["eager"].value == pytest.approx(0.04)  # of 3, 4 and 5 %
    assert ratios["compiled"].value == pytest.approx(0.10)
    assert ratios["eager"].probe_ids == ("block/1", "block/2", "block/3")
    assert ratios["eager"].relative_sd == 0.5


def test_steps_that_differ_among_themselves_are_known_by_their_own_spread() -> None:
    # 1, 4 and 10 %: standard deviation 4.58 points over a median of 4
    ratios = fragmentation_ratios([step(1, 10.1), step(2, 10.4), step(3, 11.0)])

    assert ratios["eager"].relative_sd == pytest.approx(1.1456, rel=1e-3)


def test_a_context_is_the_median_of_whole_steps_and_kernels_do_not_count() -> None:
    kernel = step(9, 0.1, kind="gemm", memory_context_bytes=3 * CONTEXT)

    context = context_bytes([step(1, 10.3), step(2, 10.3, memory_context_bytes=1.1 * CONTEXT), step(3, 10.3), kernel])

    assert context is not None
    assert context.value == CONTEXT
    assert context.relative_sd == 0.1


def test_without_these_keys_nothing_is_measured() -> None:
    plain = [step(1, 10.3, memory_reserved_peak_bytes=None, memory_context_bytes=None)]

    assert context_bytes(plain) is None
    assert fragmentation_ratios(plain) == {}
    assert fragmentation_ratios([step(1, 10.0)]) == {}  # nothing is broken up: no ratio to spread


@pytest.mark.parametrize(
    ("stack", "expected"),
    [("eager", 0.05), ("fsdp-compile", 0.1), ("tuned", None)],
)
def test_a_plan_takes_them_for_the_stacks_that_the_probe_runs(stack: str, expected: float | None) -> None:
    rates = measured_rates([step(1, 10.5), step(2, 11.0, compiled=True)])
    plan_recipe = recipe(stack=stack)

    terms = measured_terms(rates, plan_recipe, resolve_rates(cluster(), plan_recipe).terms)

    fragmentation = terms.get("fragmentation_ratio")
    assert (fragmentation.value if fragmentation else None) == (expected and pytest.approx(expected))
    assert ("context_bytes" in terms) is (expected is not None)
