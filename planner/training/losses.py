"""Published losses of one precision relative to another: rows of `catalog/precision_losses.csv`.

They are quoted as results for other models and training lengths; no equation depends on them.
"""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLoss:
    """One published comparison of two precisions."""

    id: str
    precision: str
    """The precision, by its name in plans."""
    baseline: str
    """The precision with which it was compared."""
    recipe: str
    """How the precision was applied."""
    loss_difference: float | None
    """Loss in nats, `precision` minus `baseline`; None if no loss was compared."""
    metric: str
    """Metric of `loss_difference`: `loss`, or empty without a difference."""
    model: str
    params: float
    steps: int | None
    """Number of training steps at which the losses were compared; None if the source does not say."""
    gpu: str
    """Catalogue id of the GPU; empty if the source does not say."""
    gpus: int | None
    framework: str
    rate_gain_ratio: float | None
    """Throughput relative to the baseline, less 1; None if it was not compared."""
    power_gain_ratio: float | None
    """Power relative to the baseline, less 1; None if it was not compared."""
    source: str
    date: str


def _row(row: Row) -> PublishedLoss:
    loss = row.opt_number("loss_difference", low=-10.0, high=10.0)
    metric = row.choice("metric", ("", "loss"))
    if (loss is None) == bool(metric):
        raise row.fail("metric", "`loss` where there is a difference, else nothing")
    return PublishedLoss(
        id=row.text("id"),
        precision=row.text("precision"),
        baseline=row.text("baseline"),
        recipe=row.text("recipe"),
        loss_difference=loss,
        metric=metric,
        model=row.text("model"),
        params=row.number("params", low=1.0),
        steps=row.opt_integer("steps", low=1),
        gpu=row.cell("gpu"),
        gpus=row.opt_integer("gpus", low=1),
        framework=row.text("framework"),
        rate_gain_ratio=row.opt_number("rate_gain_ratio", low=-1.0, high=100.0),
        power_gain_ratio=row.opt_number("power_gain_ratio", low=-1.0, high=100.0),
        source=row.text("source"),
        date=row.text("date"),
    )


LOSSES = Catalogue(CATALOG / "precision_losses.csv", _row)


def load_losses() -> dict[str, PublishedLoss]:
    """All rows by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return LOSSES.by_id


def published_rates(precision: str) -> tuple[PublishedLoss, ...]:
    """Rows with the throughput of a precision but without a loss, newest first."""
    rows = [row for row in load_losses().values() if row.precision == precision and row.loss_difference is None]
    return tuple(
        sorted((row for row in rows if row.rate_gain_ratio is not None), key=lambda row: row.date, reverse=True)
    )


def published_loss(precision: str) -> PublishedLoss | None:
    """The row with the newest published loss difference of a precision; None if no row states one."""
    rows = [row for row in load_losses().values() if row.precision == precision and row.loss_difference is not None]
    return max(rows, key=lambda row: row.date, default=None)
