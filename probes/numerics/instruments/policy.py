"""A recommended policy: as many layers in the lower precision as the margin allows, the most sensitive ones kept high.

Layers are kept high in the order of their sensitivity. Bisection finds how many are needed: each candidate is trained
from several seeds, and accepted only if the upper end of its interval of the loss change is within the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from planner.lazy import dataclass
from probes.numerics.instruments.sensitivity import LoweredRuns, damage, errors_only
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, count_of
from probes.numerics.instruments.warm_starts import WarmStarts

TELLING_STEPS = 50
"""Least steps for a recommendation: fewer show that nothing breaks at once, not that training ends as well."""
WITHIN, NONE_WITHIN, CANNOT_TELL, NOT_RUN = "within", "none_within", "cannot_tell", "not_run"
FOUND = (WITHIN, NONE_WITHIN, CANNOT_TELL, NOT_RUN)
"""Verdicts: the interval of a policy ends within the margin; every policy tried is beyond the margin; the intervals
straddle the margin; nothing was trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One policy that was trained."""

    keep_high: int
    """Number of layers kept high, the most sensitive ones."""
    seeds: int
    diverged: int
    loss_change: float | None
    """Mean loss change against FP32; None if a run was not finite."""
    loss_change_low: float | None
    """Lower end of its 90 % interval."""
    loss_change_high: float | None
    """Upper end of the interval; None with fewer than two seeds."""

    def is_within(self, margin: float) -> bool:
        """Return whether the loss change was shown to be within the margin."""
        return not self.diverged and self.loss_change_high is not None and self.loss_change_high <= margin

    def is_beyond(self, margin: float) -> bool:
        """Return whether the loss change was shown to exceed the margin."""
        return self.diverged > 0 or (self.loss_change_low is not None and self.loss_change_low > margin)


def order_of(rows: Sequence[Plain]) -> list[str]:
    """Return the layers from the most to the least sensitive; the layers of a group stay together."""
    ranked = sorted(rows, key=damage, reverse=True)
    return list(dict.fromkeys(layer for row in ranked for layer in row["layers"]))


def policy(warm_starts: WarmStarts | None, sensitivity: Plain, margin: float, budget: TimeBudget, keep: Keep) -> Plain:
    """Find the fewest layers to keep in FP32 so that the loss stays within the margin; return a plain document.

    Args:
        warm_starts: warm starts of the sensitivity measurement; None: there was no time for it.
        sensitivity: the sensitivity section's answer.
        margin: largest change of the loss.
        budget: time for the runs.
        keep: stores each run.
    """
    if (why := sensitivity["why_not_applied"]) is not None:
        return _unknown(sensitivity, margin, why, cut=[])
    if warm_starts is None:
        return _unknown(sensitivity, margin, "no time was left for the layers")
    if sensitivity["base_loss"] is None:
        return _unknown(sensitivity, margin, "FP32 itself ended without a finite loss, or there was no time for it")
    names, steps = list(warm_starts.kinds), int(sensitivity["steps"])
    ranked = order_of(sensitivity["layers"])
    ranked += [name for name in names if name not in ranked]
    runs = LoweredRuns(warm_starts, steps, budget, keep, 0.0)
    tried: dict[int, Tried] = {0: _tried(0, sensitivity["all_lowered"])}
    cut: list[str] = []

    def is_within(kept: int) -> bool:
        if kept not in tried:
            budget.require()
            high = set(ranked[:kept])
            change = runs.change([name for name in names if name not in high])
            if change["seeds"] < warm_starts.seeds:
                raise OutOfTimeError
            tried[kept] = _tried(kept, change)
        return tried[kept].is_within(margin)

    few, enough = -1, len(names)
    try:
        enough = 0 if is_within(0) else enough
        while enough - few > 1 and enough > 0:
            middle = max((few + enough) // 2, 0)
            few, enough = (few, middle) if is_within(middle) else (middle, enough)
    except OutOfTimeError:
        cut.append(f"between {few + 1} and {enough} layers to keep were not all tried")
    recipe_policy = _recipe_policy(warm_starts, runs, cut)
    return _document(warm_starts, sensitivity, margin, ranked[:enough], tried, recipe_policy, cut)


def _tried(kept: int, change: Plain) -> Tried:
    names = ("seeds", "diverged", "loss_change", "loss_change_low", "loss_change_high")
    return Tried(keep_high=kept, **{name: change[name] for name in names})


def _document(
    warm_starts: WarmStarts, sensitivity: Plain, margin: float, high: Sequence[str], tried: dict[int, Tried],
    recipe_policy: Plain | None, cut: list[str],
) -> Plain:  # fmt: skip
    layers = list(warm_starts.kinds)
    verdict = _verdict(len(high), len(layers), list(tried.values()), margin)
    recommended = verdict == WITHIN and int(sensitivity["steps"]) >= TELLING_STEPS
    head = {**_head(sensitivity, margin), "verdict": verdict, "recommended": recommended, "usual": recipe_policy,
            "cut_short": cut, "tried": [asdict(tried[kept]) for kept in sorted(tried)]}  # fmt: skip
    if verdict == CANNOT_TELL:
        return {**head, **_no_layers(), "words": _cannot(sensitivity, tried[0], margin)}
    low = [name for name in layers if name not in set(high)]
    kinds = Counter(warm_starts.kinds[name] for name in high)
    ratio = sum(warm_starts.sizes[name] for name in low) / max(sum(warm_starts.sizes.values()), 1)
    chosen = tried.get(len(high))
    changes = {
        f"loss_change{end}": getattr(chosen, f"loss_change{end}") if chosen else 0.0 for end in ("", "_low", "_high")
    }  # fmt: skip
    return {
        **head, "keep_high": list(high), "keep_high_kinds": dict(kinds), "lower": low,
        "lowered_parameters_ratio": ratio, **changes,
        "words": _words(sensitivity, high, kinds, len(layers), ratio),
    }  # fmt: skip


def _verdict(high: int, layers: int, tried: Sequence[Tried], margin: float) -> str:
    if high < layers:
        return WITHIN
    return NONE_WITHIN if all(row.is_beyond(margin) for row in tried) else CANNOT_TELL


def _head(sensitivity: Plain, margin: float) -> Plain:
    """State what was compared: figures with another baseline, start, number of steps or seeds are not comparable."""
    everything = sensitivity["all_lowered"] or {}
    names = ("precision", "mode", "baseline", "start", "warm_steps", "steps", "seeds")
    ends = {f"all_lowered_loss_change{end}": everything.get(f"loss_change{end}") for end in ("", "_low", "_high")}
    return {**{name: sensitivity[name] for name in names}, "margin": margin, **ends}


def _no_layers() -> Plain:
    return {
        "keep_high": [], "keep_high_kinds": {}, "lower": [], "lowered_parameters_ratio": None,
        "loss_change": None, "loss_change_low": None, "loss_change_high": None,
    }  # fmt: skip


def _recipe_policy(warm_starts: WarmStarts, runs: LoweredRuns, cut: list[str]) -> Plain | None:
    """Try the recipe's own policy: matrix products lowered; last layer, routers, norms and embeddings kept high."""
    change = runs.change(warm_starts.recipe_policy)
    if change["seeds"] < warm_starts.seeds:
        cut.append("the usual policy (last layer, norms and tables kept high) was not tried with every seed")
        return None
    return asdict(replace(errors_only(warm_starts.recipe_policy, ()), **change))


def _words(sensitivity: Plain, high: Sequence[str], kinds: Counter[str], layers: int, ratio: float) -> str:
    steps, precision = int(sensitivity["steps"]), sensitivity["precision"]
    if len(high) == layers:
        return f"no layer can be in {precision} within the margin"
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    share = f"{ratio:.0%} of the parameters in {precision}"
    if steps < TELLING_STEPS:
        what = f"with {len(high)} of {layers} layers kept high ({named})" if high else f"with {_all(layers)} lowered"
        return (
            f"no recommendation from fewer than {TELLING_STEPS} steps; over {steps} steps the loss stayed within the "
            f"margin {what}, {share}"
        )
    if not high:
        return f"{_all(layers)} can be in {precision}"
    return f"keep {len(high)} of {layers} layers high ({named}); {share}"


def _all(layers: int) -> str:
    return "the only layer" if layers == 1 else f"all {layers} layers"


def _cannot(sensitivity: Plain, everything: Tried, margin: float) -> str:
    low, high = everything.loss_change_low, everything.loss_change_high
    if low is None or high is None:
        interval = "one seed is too few" if everything.seeds == 1 else f"{everything.seeds or 'no'} seeds are too few"
    else:
        interval = f"with all layers in {sensitivity['precision']} the loss changes by {low:+.3f} to {high:+.3f}"
    return (
        f"cannot be told: no policy was shown to stay within {margin:g} over {count_of(sensitivity['seeds'], 'seed')} "
        f"({interval}); give more time"
    )


def _unknown(sensitivity: Plain, margin: float, why: str, cut: list[str] | None = None) -> Plain:
    return {
        **_head(sensitivity, margin), "verdict": NOT_RUN, "recommended": False, **_no_layers(), "usual": None,
        "tried": [],
        "words": f"unknown: {why}" if cut is None else f"not applied: {why}",
        "cut_short": [why] if cut is None else cut,
    }  # fmt: skip
