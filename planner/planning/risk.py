"""Memory risk of layouts: estimated from the few draws of a choice where these settle it, else from many."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from planner.parallelism.layout import Layouts
from planner.performance.evaluation import peak_bytes_of
from planner.performance.memory import memory_risk, memory_risks, usable_bytes
from planner.planning.case import Case
from planner.rates.terms import Draws
from planner.units import GIB

Floats = npt.NDArray[np.float64]

CHOICE_DRAWS = Draws(count=101, seed=0)
"""Common draws of a choice: a question's seed changes its ranges, not its layout."""
RISK_DRAWS = Draws(count=1001, seed=0)
"""Common draws of the risk of running out of memory, for the choice and the plan alike. With fewer draws, the chosen
layout would tend to be the one whose risk happens to be drawn too low."""
MOST_RISK = 0.5
"""A layout with a higher risk is more likely to run out of memory than not, so it does not fit."""
WORTH_TRYING = 0.2
"""Highest risk at which a hint names an option that is not safe, together with its risk."""
MOST_HOST_BYTES = 4096.0 * GIB
"""Most host memory that an option in a hint may need: servers of eight GPUs have 1 to 4 TiB. Assumed."""
UNSURE = 0.06
"""How far a risk from the few draws of the choice may exceed that from `RISK_DRAWS`: near 5 %, two and a half standard
deviations of a share of 101 draws."""
SURELY = 0.9
"""A layout whose peak stays below this share of the memory in all draws of the choice is safe without further draws."""


def risk_of(case: Case, at: Layouts) -> float:
    """Return the probability, 0..1, that one layout runs out of memory."""
    return memory_risk(case.memory(at, RISK_DRAWS).total, case.cluster.gpu)


class Risks:
    """The risks of some layouts; each layout is drawn at most once and its risk computed at most once.

    Args:
        case: the question on one kind of GPU.
        layouts: the layouts that indices refer to.
    """

    def __init__(self, case: Case, layouts: Layouts) -> None:
        self.case, self.layouts = case, layouts
        self.allowed = min(case.memory_risk, MOST_RISK)
        """The highest risk of a safe layout."""
        self.peak_bytes: dict[int, Floats] = {}
        """Peak memory in bytes under the draws of the choice, by index of the layouts drawn so far, `[draw]`."""
        self._likely: dict[int, bool] = {}
        self._safe: dict[int, bool] = {}

    def draw(self, indices: Iterable[int]) -> None:
        """Draw the memory of some layouts in one pass."""
        new = [i for i in dict.fromkeys(indices) if i not in self.peak_bytes]
        needed_bytes = drawn_bytes(self.case, self.layouts.take(np.array(new, dtype=np.intp)))
        self.peak_bytes.update(zip(new, needed_bytes, strict=True))
        may = memory_risks(needed_bytes, self.case.cluster.gpu) <= self.allowed + UNSURE
        self._likely.update(zip(new, may.tolist(), strict=True))

    def draw_ahead(self, indices: Iterable[int]) -> None:
        """Draw the memory of some layouts many times, in one pass, where `is_safe` will need that."""
        open_ = [i for i in dict.fromkeys(indices) if i not in self._safe and not self._is_surely_safe(i)]
        self.case.memory_ahead(self.layouts.take(np.array(open_, dtype=np.intp)), RISK_DRAWS)

    def is_likely_safe(self, i: int) -> bool:
        """Return whether a layout that was drawn may be safe, as far as the few draws show."""
        return self._likely[i]

    def is_safe(self, i: int) -> bool:
        """Return whether a layout's risk is within the limit, using many draws where the few leave it open."""
        if i not in self._safe:
            self._safe[i] = self._is_surely_safe(i) or risk_of(self.case, self.layouts.only(i)) <= self.allowed
        return self._safe[i]

    def _is_surely_safe(self, i: int) -> bool:
        """Return whether all of the few draws stay so far below the memory limit that more would change nothing."""
        room_bytes = SURELY * usable_bytes(self.case.cluster.gpu)
        return i in self.peak_bytes and float(self.peak_bytes[i].max()) <= room_bytes

    @property
    def unsafe(self) -> list[int]:
        """Layouts that are known not to be safe."""
        return [*(i for i, safe in self._safe.items() if not safe), *(i for i, may in self._likely.items() if not may)]


def drawn_bytes(case: Case, layouts: Layouts) -> Floats:
    """Return the peak memory of every layout under every draw of the choice, `[layout, draw]`."""
    if not len(layouts):
        return np.zeros((0, CHOICE_DRAWS.count))
    needed_bytes = peak_bytes_of(case.recipe, layouts.column, case.rates.sample(CHOICE_DRAWS))
    return np.broadcast_to(np.asarray(needed_bytes, dtype=np.float64), (len(layouts), CHOICE_DRAWS.count))
