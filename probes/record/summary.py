"""Summary of a run in one table: speed, memory and energy of each precision against FP32 and TF32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.lazy import dataclass
from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One precision on one training step; ratios are above 1 where it is faster, smaller or uses less energy."""

    precision: str
    recipe: str
    mode: str
    """`eager`, or `compiled` by `torch.compile`, which fuses the casts that limit eager FP8."""
    model: str
    tokens_per_s: float
    """Images per second for a CNN."""
    memory_bytes: float | None
    """Peak of live tensors."""
    energy_j_per_token: float | None
    speed_over_fp32: float | None
    speed_over_tf32: float | None
    memory_under_fp32: float | None
    """FP32's peak over the peak of this precision."""
    energy_under_fp32: float | None
    quality: str | None


def summarise_run(measurements: Iterable[Measurement]) -> tuple[SummaryRow, ...]:
    """Return rows for the model trained in the most precisions (the deepest on a tie), in the order of measurement.

    Compiled steps of that model precede the eager steps of their recipe; ratios are to eager FP32 and TF32.
    """
    done = [
        m
        for m in measurements
        if m.kind == "end_to_end" and m.usable_time and m.shape.tokens and m.setup.recompute == "none"
    ]
    plain = [m for m in done if not m.setup.compiled]
    if not plain:
        return ()
    counts = Counter(_case(m) for m in plain)
    chosen = max(counts, key=lambda case: (counts[case], case[1]))
    rows = {m.setup.recipe: m for m in plain if _case(m) == chosen}
    compiled = {m.setup.recipe: m for m in done if m.setup.compiled and _case(m) == chosen}
    recipes = dict.fromkeys([*rows, *compiled])
    listed = [by_recipe[name] for name in recipes for by_recipe in (compiled, rows) if name in by_recipe]
    return tuple(_row(m, rows.get("fp32"), rows.get("tf32")) for m in listed)


Case = tuple[str, int, int, int]


def _case(m: Measurement) -> Case:
    return (m.shape.model or "", m.shape.layers or 0, m.shape.seq_len or 0, m.shape.micro_batch or 0)


def _row(m: Measurement, fp32: Measurement | None, tf32: Measurement | None) -> SummaryRow:
    model, layers, length, batch = _case(m)
    return SummaryRow(
        precision=m.setup.precision or "",
        recipe=m.setup.recipe or "",
        mode="compiled" if m.setup.compiled else "eager",
        model=f"{model}, {layers} layer{'' if layers == 1 else 's'}, {batch} × {length}",
        tokens_per_s=(m.shape.tokens or 0) / (m.time.median_s or float("nan")),
        memory_bytes=m.memory.allocated_peak_bytes,
        energy_j_per_token=_per_token(m),
        speed_over_fp32=_over(_time(fp32), _time(m)),
        speed_over_tf32=_over(_time(tf32), _time(m)),
        memory_under_fp32=_over(fp32.memory.allocated_peak_bytes if fp32 else None, m.memory.allocated_peak_bytes),
        energy_under_fp32=_over(_per_token(fp32), _per_token(m)),
        quality=m.sampling.quality,
    )


def _time(m: Measurement | None) -> float | None:
    return m.time.median_s if m else None


def _per_token(m: Measurement | None) -> float | None:
    if m is None or m.energy.j_per_iteration is None or not m.shape.tokens:
        return None
    return m.energy.j_per_iteration / m.shape.tokens


def _over(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None
