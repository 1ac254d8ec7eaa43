"""How a case bears on its claim: for it, against it, inconclusive, or without counting."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.claim import Claim

STANDINGS = ("agrees", "includes", "disagrees", "beside", "not_found", "left_out")
"""`agrees`: the middle is within the claim's figures. `disagrees`: the whole range is outside. `includes`: the range
overlaps them but its middle is outside, so it is neither for nor against. `beside`: it does not count. `not_found`: a
part of the claim for which no value was found. `left_out`: it turned out to be no case, with the reason."""

Ends = tuple[float | None, float | None]


def figures(claim: Claim, case: Case) -> Ends:
    """Return the bounds within which a case agrees, as claimed; None: unbounded."""
    if case.claimed is not None:
        return case.claimed
    return (
        None if claim.reading == "up_to" else claim.low,
        None if claim.reading == "at_least" else claim.high,
    )


def band(claim: Claim, case: Case) -> Ends:
    """Return the bounds of `figures` widened by the claim's tolerance.

    The tolerance is a share of the figure, but for a ratio a share of the gain: a claim of 1.10 to 1.25 times means 10
    % to 25 %, and a tenth of the whole ratio would accept no gain at all.
    """
    low, high = figures(claim, case)
    unit = case.unit or claim.unit
    return (
        None if low is None else low - _slack(claim, low, unit),
        None if high is None else high + _slack(claim, high, unit),
    )


def _slack(claim: Claim, figure: float, unit: str) -> float:
    return claim.tolerance_ratio * abs(figure - 1.0 if unit == "ratio" else figure)


def standing(claim: Claim, case: Case) -> str:
    """Return one of `STANDINGS`."""
    if case.mid is None:
        return "left_out" if case.beside else "not_found"
    if case.beside:
        return "beside"
    low, high = band(claim, case)
    least, most = (case.mid if end is None else end for end in (case.low, case.high))
    if (low is None or case.mid >= low) and (high is None or case.mid <= high):
        return "beside" if case.own else "agrees"
    outside = (low is not None and most < low) or (high is not None and least > high)
    if case.own and not outside:
        return "beside"
    return "disagrees" if outside else "includes"


def reaches(claim: Claim, value: float) -> bool:
    """Return whether a value comes near the figure of an `up_to` claim."""
    assert claim.high is not None
    return value >= claim.high - _slack(claim, claim.high, claim.unit)
