"""A measurement record as evidence: whole steps, products, checkpointing and optimizer states of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.claims.case import Case, left_out
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import arrow
from planner.errors import Message
from planner.records.measurement import Measurement
from planner.records.work import WorkShape

UNMOVED = 0.01
"""Relative change of a peak below which recomputation is taken not to have moved it."""

MIXED = ("fp16", "bf16-autocast", "bf16-fsdp", "fp8")
"""Recipes of the probe that use mixed precision."""

Value = Callable[[Measurement, Measurement], float | None]
"""Converts a point and its counterpart to the unit of a claim."""


def speed(before: Measurement, after: Measurement) -> float | None:
    """Return the speed-up of the second point over the first."""
    first_s, second_s = before.time.median_s, after.time.median_s
    return first_s / second_s if first_s and second_s else None


def time_saved(before: Measurement, after: Measurement) -> float | None:
    """Return the share of the time that the second point saves."""
    ratio = speed(before, after)
    return None if ratio is None else 1.0 - 1.0 / ratio


def memory_saved(before: Measurement, after: Measurement) -> float | None:
    """Return the share of the peak memory that the second point saves."""
    return _saved(before.memory.allocated_peak_bytes, after.memory.allocated_peak_bytes)


def energy_saved(before: Measurement, after: Measurement) -> float | None:
    """Return the share of the energy of a step that the second point saves."""
    return _saved(before.energy.j_per_iteration, after.energy.j_per_iteration)


def activations_saved(plain: Measurement, recomputed: Measurement) -> float | None:
    """Return the share of the peak above the persistent memory that recomputation saves."""
    above = [(p.memory.allocated_peak_bytes or 0.0) - (p.memory.persistent_bytes or 0.0) for p in (plain, recomputed)]
    return _saved(*above)


def time_added(plain: Measurement, recomputed: Measurement) -> float | None:
    """Return the share of time that recomputation adds."""
    ratio = speed(recomputed, plain)
    return None if ratio is None else ratio - 1.0


def _saved(before: float | None, after: float | None) -> float | None:
    return 1.0 - after / before if before and after and before > 0 else None


OF_GPUS = (speed, time_saved, energy_saved)
"""Values that a CPU cannot decide for a claim about GPUs, since it has neither tensor cores nor their power. Memory it
can."""


def steps(known: Known, value: Value, *, frm: Sequence[str], to: Sequence[str] = MIXED, model: str = "") -> list[Case]:
    """Return whole steps in two recipes that are otherwise alike.

    Args:
        known: evidence with the points.
        value: converts a pair to the unit of the claim.
        frm: recipes to compare with.
        to: recipes that are compared.
        model: beginning of the model's name; empty: all models.
    """
    groups: dict[object, dict[str, Measurement]] = {}
    for point in known.points:
        if point.kind == "end_to_end" and point.usable_time and (point.shape.model or "").startswith(model):
            key = (point.shape, point.setup.recompute, point.setup.compiled, point.device.kind)
            groups.setdefault(key, {})[point.setup.recipe or ""] = point
    return _pairs(known, tuple(groups.values()), value, frm, to)


def products(known: Known, *, frm: Sequence[str], to: Sequence[str]) -> list[Case]:
    """Return the speed-ups of matrix products of one shape between two recipes."""
    groups: dict[object, dict[str, Measurement]] = {}
    for point in known.points:
        if point.kind == "gemm" and point.usable_time and point.setup.role == "forward":
            groups.setdefault(point.shape, {})[point.setup.recipe or ""] = point
    return _pairs(known, tuple(groups.values()), speed, frm, to)


def _pairs(
    known: Known, groups: Sequence[dict[str, Measurement]], value: Value, frm: Sequence[str], to: Sequence[str]
) -> list[Case]:
    return [
        _case(known, recipes[wide], recipes[narrow], value, arrow(wide, narrow))
        for recipes in groups
        for wide in frm
        for narrow in to
        if wide in recipes and narrow in recipes and value(recipes[wide], recipes[narrow]) is not None
    ]


def checkpointing(known: Known, value: Value) -> list[Case]:
    """Return points with full recomputation against the same points without it."""
    kinds = ("block", "end_to_end")
    points = [point for point in known.points if point.kind in kinds and point.usable_time]
    plain = {(point.kind, point.shape, point.setup): point for point in points if point.setup.recompute == "none"}
    made = []
    for point in points:
        twin = plain.get((point.kind, point.shape, replace(point.setup, recompute="none")))
        if point.setup.recompute != "full" or twin is None or value(twin, point) is None:
            continue
        case = _case(known, twin, point, value, point.setup.recipe or "")
        if value is activations_saved and not _moved(twin, point):
            why = Message.of("claim.why.peak_unmoved", what=case.what)
            case = left_out(case.what, basis=case.basis, source=case.source, why=why)
        made.append(case)
    return made


def _moved(plain: Measurement, recomputed: Measurement) -> bool:
    """Return whether recomputation moves the peak; a peak outside the blocks reveals nothing about activations."""
    before, after = (point.memory.allocated_peak_bytes or 0.0 for point in (plain, recomputed))
    return abs(before - after) > UNMOVED * before


def optimizer_states(known: Known, optimizer: str) -> list[Case]:
    """Return the state bytes per parameter in a real step of an optimizer."""
    return [
        Case.exactly(
            point.memory.optimizer_state_bytes_per_param, what=f"{optimizer}, {point.device.name}",
            basis="measured", source=_source(known, point),
        )
        for point in known.points
        if point.kind == "optimizer" and point.setup.optimizer == optimizer
        and point.memory.optimizer_state_bytes_per_param is not None
    ]  # fmt: skip


def update_times(known: Known, optimizer: str) -> list[Case]:
    """Return the update time of an optimizer over AdamW's, as a case beside the verdict."""
    updates = {p.setup.optimizer: p for p in known.points if p.kind == "optimizer" and p.usable_time}
    usual, own = updates.get("adamw"), updates.get(optimizer)
    ratio = None if usual is None or own is None else speed(own, usual)
    if own is None or usual is None or ratio is None:
        return []
    low, high = _ends(own, usual, speed, ratio)
    what = f"{optimizer} / adamw, {own.device.name}, s"
    return [
        Case(
            what=what, basis="measured", source=_source(known, own), low=low, mid=ratio, high=high, unit="ratio",
            beside=True,
        )
    ]  # fmt: skip


def _case(known: Known, before: Measurement, after: Measurement, value: Value, recipes: str) -> Case:
    measured = value(before, after)
    assert measured is not None
    shape = after.shape
    size = _sized(shape) if shape.model else "x".join(str(n) for n in (shape.gemm_m, shape.gemm_n, shape.gemm_k) if n)
    what = ", ".join(part for part in (size, after.device.name, recipes) if part)
    on_cpu = after.device.kind == "cpu"
    low, high = _ends(before, after, value, measured)
    return Case(
        what=what, basis="measured", source=_source(known, after), low=low, mid=measured, high=high,
        stands_in=on_cpu, beside=on_cpu and value in OF_GPUS,
    )  # fmt: skip


def _ends(before: Measurement, after: Measurement, value: Value, middle: float) -> tuple[float, float]:
    """Return the value between the fast end of one time and the slow end of the other, and vice versa."""
    ends = [middle]
    for first, second in ((0, 1), (1, 0)):
        shifted = value(_timed(before, _spread(before)[first]), _timed(after, _spread(after)[second]))
        ends += [] if shifted is None else [shifted]
    return min(ends), max(ends)


def _spread(point: Measurement) -> tuple[float | None, float | None]:
    """Return the 5th and 95th percentile of a time, else its confidence interval, else the median twice."""
    time = point.time
    for low_s, high_s in ((time.p05_s, time.p95_s), (time.ci_low_s, time.ci_high_s)):
        if low_s and high_s:
            return low_s, high_s
    return time.median_s, time.median_s


def _timed(point: Measurement, median_s: float | None) -> Measurement:
    """Return the point with another median time."""
    return replace(point, time=replace(point.time, median_s=median_s))


def _sized(shape: WorkShape) -> str:
    """Return a model with layers, length and batch; its family is dropped where the size names it, too."""
    model = shape.model or ""
    family, _, size = model.partition("-")
    name = size if size.startswith(family) else model
    sizes = (("L", shape.layers), ("s", shape.seq_len), ("b", shape.micro_batch))
    return " ".join([name, "".join(f"{letter}{number}" for letter, number in sizes if number)]).strip()


def _source(known: Known, point: Measurement) -> str:
    return f"{known.record or 'own record'}: {point.probe_id}"
