"""Whether a recipe runs on a device, as a line of the record."""

from __future__ import annotations

from planner.records.figures import Numerics
from probes.device.device import Device
from probes.precisions.interface import PrecisionRecipe
from probes.precisions.support import check_support
from probes.record.figures import Figures
from probes.timing.trial import Point, Trial


def no_trial(device: Device) -> Trial:
    """Serve as the trial of points that are not timed.

    Raises:
        AssertionError: always.
    """
    raise AssertionError("this point has no trial")


def support_point(recipe: PrecisionRecipe) -> Point:
    """Return the point of the line that says whether a recipe runs here."""
    return Point(probe_id=f"support/{recipe.id}", kind="support", workload="support", recipe=recipe, build=no_trial)


def support_figures(recipe: PrecisionRecipe, device: Device) -> Figures:
    """Return whether a recipe runs on a device, and with what error.

    Raises:
        DeviceLost: the check broke the device.
    """
    support = check_support(recipe, device)
    status = "ok" if support.reason is None else "unsupported"
    numerics = Numerics(product_error_ratio=support.error_ratio)
    return Figures(status=status, reason=support.reason, numerics=numerics)
