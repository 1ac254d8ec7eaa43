"""Dynamic loss scalers: rows of `catalog/loss_scalers.csv` with the defaults for the scale's start, growth and fall."""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class LossScaler:
    """Defaults of a dynamic loss scaler (Micikevicius et al., arXiv 1710.03740, section 3.2)."""

    id: str
    name: str
    initial_scale: float
    growth_factor: float
    """Factor by which the scale is multiplied after an interval without overflow."""
    backoff_factor: float
    """Factor by which the scale is multiplied on overflow."""
    growth_interval_steps: int
    hysteresis: int
    """Number of steps with an overflow before the scale falls; the count restarts when the scale grows."""
    stacks: tuple[str, ...]
    """Software stacks of plans that train with it; empty if none does."""
    source: str
    date: str

    @property
    def steady_skipped_step_ratio(self) -> float:
        """Share of steps skipped in the steady state, if each growth makes the scale one step too large.

        The scale grows after each interval of good steps. Then as many steps as the hysteresis overflow before it falls
        back: 1 / 2001 for PyTorch, 2 / 1002 for Megatron-Core. This is calculated, not measured.
        """
        return self.hysteresis / (self.growth_interval_steps + self.hysteresis)


def _scaler(row: Row) -> LossScaler:
    return LossScaler(
        id=row.text("id"), name=row.text("name"), initial_scale=row.number("initial_scale", low=1.0),
        growth_factor=row.number("growth_factor", low=1.0), backoff_factor=row.number("backoff_factor", high=1.0),
        growth_interval_steps=row.integer("growth_interval_steps", low=1),
        hysteresis=row.integer("hysteresis", low=1, high=100), stacks=row.words("stacks"), source=row.text("source"),
        date=row.text("date"),
    )  # fmt: skip


LOSS_SCALERS = Catalogue(CATALOG / "loss_scalers.csv", _scaler, what="loss scaler", listing="mpplan claims c28")


def load_loss_scalers() -> dict[str, LossScaler]:
    """All loss scalers by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return LOSS_SCALERS.by_id


def loss_scaler_of(stack: str) -> LossScaler:
    """The loss scaler that a software stack uses in FP16 training.

    Args:
        stack: one of `recipe.STACKS`.
    """
    return next(scaler for scaler in load_loss_scalers().values() if stack in scaler.stacks)
