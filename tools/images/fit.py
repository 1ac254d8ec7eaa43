"""Fit the terms of vision models to timed training steps: `make imagefit` writes them to the parameters.

The steps are those of timm's models on one GPU (`benchmarks/images/steps.csv`), the equations are the planner's own,
and the priors are in `benchmarks/images/priors.csv`. Only terms that no other kind of model uses are changed; the
rates of memory, products and launches that they rest on stay as fitted to published runs.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.evidence import Z90
from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import Cluster, make_cluster
from planner.models.image_network import ImageNetwork
from planner.models.images.catalogue import load_image_models, network_of
from planner.parallelism.layout import Layout, Layouts
from planner.performance.images.step import image_step
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import PARAMETERS, Parameters, shipped_parameters
from planner.rates.terms import Rates
from planner.rows import Row, read_rows
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from planner.units import today
from tools.house import ROOT

Floats = npt.NDArray[np.float64]

STEPS = ROOT / "benchmarks" / "images" / "steps.csv"
PRIORS = ROOT / "benchmarks" / "images" / "priors.csv"

STEP_LOG_SD = 0.5
"""Standard deviation of one log step time in the fit: large, since errors correlate and many models are alike."""
HUBER_DELTA = 0.15
"""Absolute residual from which a step's loss is linear instead of quadratic, since some models use special kernels."""
TRANSFER_SD = 0.12
"""Standard deviation of a term's logarithm between this GPU and others: assumed."""
BENCHMARK_OVERHEAD_S = 0.003
"""Host time between steps of a loop that loads no images and logs nothing: assumed."""
ITERATIONS = 12
STEP = 1e-3
"""Step of the numerical derivatives, in the logarithm of a term."""
LARGEST_MOVE = 0.7
"""Largest step of one iteration, in the logarithm of a term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """One timed training step."""

    model: str
    family: str
    """Family of models with a similar design, whose errors correlate."""
    network: ImageNetwork
    """The network at the image size of the step."""
    channels_last: bool
    batch: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The prior of a term, before the steps are taken into account."""

    id: str
    log_value: float
    log_sd: float


def family_of(architecture: str) -> str:
    """Return the design family of an architecture: its name up to the first digit, without prefixes for its trainer."""
    plain = re.sub(r"^(tf|gluon|legacy|tv|ssl|swsl|ig|jx|dm|adv|ens|gc|eca)_", "", architecture)
    match = re.match(r"[a-z]+", plain)
    return match[0] if match else plain


@cache
def timed_steps() -> tuple[TimedStep, ...]:
    """Return the timed steps of all models whose operations are known."""
    models = load_image_models()
    return tuple(_timed(row) for row in read_rows(STEPS) if row.text("architecture") in models)


def _timed(row: Row) -> TimedStep:
    architecture, batch = row.text("architecture"), row.integer("batch", low=1)
    network = network_of(load_image_models()[architecture]).at_size(row.integer("image_size", low=8))
    return TimedStep(
        model=row.text("model"), family=family_of(row.text("model")), network=network,
        channels_last=row.choice("channels", ("first", "last")) == "last", batch=batch,
        seconds=batch / row.number("images_per_s"),
    )  # fmt: skip


@cache
def priors() -> tuple[Prior, ...]:
    """Return the priors of the terms that are fitted."""
    return tuple(
        Prior(
            id=row.text("id"), log_value=float(np.log(row.number("value"))),
            log_sd=float(np.log(row.number("high") / row.number("low")) / (2.0 * Z90)),
        )
        for row in read_rows(PRIORS)
    )  # fmt: skip


@cache
def recipe_of(channels_last: bool) -> Recipe:
    """Return the recipe of the timed steps: eager PyTorch 1.12 with FP16 autocast; attention stores its scores."""
    return Recipe(
        model=load_image_models()["resnet50"], policy=find_policy("fp16"), optimizer=find_optimizer("sgd-momentum"),
        method="pretrain", seq_len=1, global_batch=1, stack="eager", attention="naive", channels_last=channels_last,
    )  # fmt: skip


def seconds(steps: Sequence[TimedStep], parameters: Parameters) -> Floats:
    """Return the planner's predictions for timed steps, `[step]`."""
    cluster = make_cluster(find_gpu("rtx-3090"))
    rates = {last: _rates(cluster, last, parameters) for last in (True, False)}
    return np.array([
        float(np.ravel(image_step(
            step.network, recipe_of(step.channels_last), cluster, alone(step.batch), rates[step.channels_last]
        ).total)[0])
        for step in steps
    ])  # fmt: skip


def _rates(cluster: Cluster, channels_last: bool, parameters: Parameters) -> Rates:
    rates = resolve_rates(cluster, recipe_of(channels_last), None, parameters).sample()
    return rates.replaced(image_step_overhead_s=BENCHMARK_OVERHEAD_S)


@cache
def alone(batch: int) -> Layouts:
    """Return the layout of one GPU that processes a whole batch at once."""
    layout = Layout(tp=1, pp=1, vp=1, cp=1, ep=1, dp=1, zero=0, micro_batch=batch, grad_accum=1, act_ckpt="none")
    return Layouts.of(layout)


def predicted(steps: Sequence[TimedStep], log_values: Floats) -> Floats:
    """Return the planner's predictions with these values of the fitted terms, `[step]`."""
    shipped = shipped_parameters()
    values = {prior.id: float(np.exp(x)) for prior, x in zip(priors(), log_values, strict=True)}
    moved = shipped.replaced(replace(shipped.rows[name], value=value) for name, value in values.items())
    return seconds(steps, moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Logarithms of the fitted terms, in the order of `priors`, with their uncertainty."""

    log_values: Floats
    log_sd: Floats


def fit(steps: Sequence[TimedStep], start: Floats | None = None, iterations: int = ITERATIONS) -> Fitted:
    """Fit the terms to steps and priors by Gauss-Newton iterations with Levenberg damping.

    Args:
        steps: the steps to fit.
        start: initial values; None: the priors.
        iterations: maximum number of iterations.
    """
    centre = np.array([prior.log_value for prior in priors()])
    spread = np.array([prior.log_sd for prior in priors()])
    measured = np.log([step.seconds for step in steps])

    def residuals(x: Floats) -> Floats:
        off = np.log(predicted(steps, x)) - measured
        off = off * np.minimum(1.0, np.sqrt(HUBER_DELTA / np.maximum(np.abs(off), 1e-12)))
        return np.concatenate([off / STEP_LOG_SD, (x - centre) / spread])

    x = centre.copy() if start is None else start.copy()
    now, damping = residuals(x), 1e-2
    slope = np.zeros((len(now), len(x)))
    for _ in range(iterations):
        slope = np.stack([(residuals(x + STEP * unit) - now) / STEP for unit in np.eye(len(x))], axis=1)
        curved, gain = slope.T @ slope, 0.0
        for _ in range(5):
            move = np.linalg.solve(curved + damping * np.diag(np.diag(curved)), -slope.T @ now)
            candidate = x + np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
            after = residuals(candidate)
            gain = float(now @ now - after @ after)
            if gain > 0:
                x, now, damping = candidate, after, max(damping / 4.0, 1e-6)
                break
            damping *= 4.0
        if gain < 1e-3 * float(now @ now):
            break
    return Fitted(log_values=x, log_sd=np.sqrt(np.diag(np.linalg.inv(slope.T @ slope))))


def write(fitted: Fitted) -> None:
    """Write the terms with their ranges for any GPU to `planner/catalog/parameters.csv`; other lines are kept."""
    ranges = {
        prior.id: (np.exp(x), np.exp(x - Z90 * np.hypot(sd, TRANSFER_SD)), np.exp(x + Z90 * np.hypot(sd, TRANSFER_SD)))
        for prior, x, sd in zip(priors(), fitted.log_values, fitted.log_sd, strict=True)
    }
    lines = PARAMETERS.read_text(encoding="utf-8").splitlines(keepends=True)
    columns = next(csv.reader(lines[:1]))
    with PARAMETERS.open("w", encoding="utf-8", newline="") as file:
        for line in lines:
            cells = dict(zip(columns, next(csv.reader([line])), strict=True))
            if cells["id"] not in ranges:
                file.write(line)
                continue
            cells |= dict(
                zip(("value", "low", "high"), (f"{figure:.4g}" for figure in ranges[cells["id"]]), strict=True)
            )
            cells["date"] = today().isoformat()
            csv.writer(file, lineterminator="\n").writerow(cells.values())


def summary(errors: Floats) -> str:
    """Return the median and 90th percentile of the absolute errors, and their bias, in one line."""
    size = np.abs(errors)
    return (
        f"{len(errors)} steps: median error {np.median(size):.1%}, 90th percentile {np.quantile(size, 0.9):.1%}, "
        f"bias {np.median(errors):+.1%}"
    )


def errors_of(steps: Sequence[TimedStep], log_values: Floats) -> Floats:
    """Return prediction over measurement, minus 1, `[step]`."""
    measured = np.array([step.seconds for step in steps])
    return np.asarray(predicted(steps, log_values) / measured - 1.0)


def main() -> int:
    """Fit, write, and print the errors."""
    steps = timed_steps()
    fitted = fit(steps)
    write(fitted)
    sys.stdout.write(summary(errors_of(steps, fitted.log_values)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
