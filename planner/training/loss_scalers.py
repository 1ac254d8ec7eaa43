"""Dynamic loss scalers as rows of `catalog/loss_scalers.csv`: where the scale starts, grows and falls by default."""

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
    """What the scale is multiplied with after an interval without overflow."""
    backoff_factor: float
    """What it is multiplied with on overflow."""
    growth_interval_steps: int
    hysteresis: int
    """Steps with an overflow that it takes before the scale falls; the count begins anew when the scale grows."""
    stacks: tuple[str, ...]
    """Software stacks of plans that train with it; empty where none does."""
    source: str
    date: str

    @property
    def steady_skipped_step_ratio(self) -> float:
        """Share of the steps that a settled scale skips if each growth is one doubling too far.

        After each interval of good steps the scale grows, and as many steps as the hysteresis overflow before it falls
        back: 1 / 2001 for PyTorch, 2 / 1002 for Megatron-Core. Arithmetic, not a measurement.
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
    """The scaler that a software stack trains with in FP16.

    Args:
        stack: one of `recipe.STACKS`.
    """
    return next(scaler for scaler in load_loss_scalers().values() if stack in scaler.stacks)
