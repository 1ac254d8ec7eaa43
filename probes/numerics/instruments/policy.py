"""A recommended policy: as many layers in the lower precision as the margin allows, the most sensitive ones kept high.

Layers are kept in the order of their damage. How many have to be is found by halving, with a run for each guess, so the
recommendation itself was trained with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from probes.numerics.instruments.sensitivity import Bench, Turned, damage
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice

TELLING_STEPS = 50
"""Fewer steps show that nothing breaks at once, not that training ends as well."""


def order_of(rows: Sequence[Plain]) -> list[str]:
    """Layers from the most to the least sensitive; those of a group stand together."""
    ranked = sorted(rows, key=damage, reverse=True)
    return list(dict.fromkeys(layer for row in ranked for layer in row["layers"]))


def policy(bench: Bench | None, sensitivity: Plain, margin: float, until: Slice, keep: Keep) -> Plain:
    """The fewest layers to keep in FP32 so that the loss stays within the margin, as a plain document.

    Args:
        bench: where the sensitivity was measured; None where there was no time.
        sensitivity: what it found.
        margin: of the loss.
        until: time for it.
        keep: keeps each run.
    """
    precision, base = sensitivity["precision"], sensitivity["base_loss"]
    if bench is None:
        return _unknown(precision, margin, "no time was left for the layers")
    if base is None:
        return _unknown(precision, margin, "FP32 itself ended without a finite loss")
    names, steps = list(bench.kinds), int(sensitivity["steps"])
    ranked = order_of(sensitivity["layers"])
    ranked += [name for name in names if name not in ranked]
    tried: dict[int, Turned] = {0: _row(sensitivity["all_lowered"]), len(names): _nothing_lowered(base)}

    def within(kept: int) -> bool:
        if kept not in tried:
            high = set(ranked[:kept])
            low = tuple(name for name in names if name not in high)

            def work() -> Plain:
                until.must_last()
                return asdict(bench.turned(low, steps, base))

            tried[kept] = _row(keep(f"keep/{kept}", work))
        return damage(tried[kept]) <= margin

    cut: list[str] = []
    few, enough = -1, len(names)
    try:
        if within(0):
            enough = 0
        while enough - few > 1 and enough > 0:
            middle = max((few + enough) // 2, 0)
            few, enough = (few, middle) if within(middle) else (middle, enough)
    except OutOfTimeError:
        cut.append(f"between {few + 1} and {enough} layers to keep were not all tried")
    usual = _usual(bench, steps, base, until, keep, cut)
    return _document(bench, sensitivity, margin, ranked[:enough], tried[enough], usual, cut)


def _document(
    bench: Bench, sensitivity: Plain, margin: float, high: Sequence[str], result: Turned, usual: Plain | None,
    cut: list[str],
) -> Plain:  # fmt: skip
    layers, steps = bench.run.switches.layers, int(sensitivity["steps"])
    sizes = {name: sum(p.numel() for p in layer.parameters(recurse=False)) for name, layer in layers.items()}
    low = [name for name in layers if name not in set(high)]
    kinds = Counter(bench.kinds[name] for name in high)
    ratio = sum(sizes[name] for name in low) / max(sum(sizes.values()), 1)
    return {
        "precision": sensitivity["precision"], "mode": sensitivity["mode"], "margin": margin, "steps": steps,
        "keep_high": list(high), "keep_high_kinds": dict(kinds), "lower": low, "lowered_parameters_ratio": ratio,
        "loss_change": result.loss_change, "all_lowered_loss_change": sensitivity["all_lowered"]["loss_change"],
        "usual": usual, "cut_short": cut,
        "words": _words(sensitivity["precision"], high, kinds, len(layers), ratio, steps),
    }  # fmt: skip


def _usual(bench: Bench, steps: int, base: float, until: Slice, keep: Keep, cut: list[str]) -> Plain | None:
    """What recipes do by themselves: matrix products lowered, the last layer, routers, norms and tables kept high."""

    def work() -> Plain:
        until.must_last()
        return asdict(bench.turned(tuple(bench.run.switches.policy(bench.recipe)), steps, base))

    try:
        return keep("usual", work)
    except OutOfTimeError:
        cut.append("the usual policy (last layer, norms and tables kept high) was not tried")
        return None


def _words(precision: str, high: Sequence[str], kinds: Counter[str], layers: int, ratio: float, steps: int) -> str:
    seen = _advice(precision, high, kinds, layers, ratio)
    return seen if steps >= TELLING_STEPS else f"{seen}; {steps} steps only: give more time before relying on it"


def _advice(precision: str, high: Sequence[str], kinds: Counter[str], layers: int, ratio: float) -> str:
    if not high:
        return f"all {layers} layers can be in {precision}"
    if len(high) == layers:
        return f"no layer can be in {precision} within the margin"
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"keep {len(high)} of {layers} layers high ({named}); {ratio:.0%} of the parameters in {precision}"


def _unknown(precision: str, margin: float, why: str) -> Plain:
    return {
        "precision": precision, "mode": None, "margin": margin, "steps": 0, "keep_high": [], "keep_high_kinds": {},
        "lower": [], "lowered_parameters_ratio": None, "loss_change": None, "all_lowered_loss_change": None,
        "usual": None, "words": f"unknown: {why}", "cut_short": [f"policy: {why}"],
    }  # fmt: skip


def _row(row: Plain) -> Turned:
    return Turned(**{**row, "layers": tuple(row["layers"])})


def _nothing_lowered(base: float) -> Turned:
    return Turned(layers=(), loss=base, loss_change=0.0, gradient_error_ratio=0.0)
