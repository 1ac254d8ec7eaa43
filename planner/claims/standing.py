"""How a case stands to its claim: for it, against it, too wide to tell, or beside it."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.claim import Claim

STANDINGS = ("agrees", "includes", "disagrees", "beside", "not_found", "left_out")
"""`agrees`: the middle lies within the claim's figures; `disagrees`: the whole range lies outside; `includes`: the
range reaches into them, its middle does not: neither for the claim nor against it; `beside`: it does not count;
`not_found`: a part of the claim that was looked at in vain; `left_out`: no case after all, and why."""

Ends = tuple[float | None, float | None]


def figures(claim: Claim, case: Case) -> Ends:
    """Between which figures a case agrees, as they are claimed; None: unbounded."""
    if case.claimed is not None:
        return case.claimed
    return (
        None if claim.reading == "up_to" else claim.low,
        None if claim.reading == "at_least" else claim.high,
    )


def band(claim: Claim, case: Case) -> Ends:
    """The same widened by the claim's tolerance, which is a share of the figure; of a ratio a share of the gain.

    A claim of 1.10 to 1.25 times is one of 10 % to 25 %: a tenth of the whole ratio would take no gain at all for it.
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
    """One of `STANDINGS`."""
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
    """Whether a value comes near the figure that a claim says something reaches `up to`."""
    assert claim.high is not None
    return value >= claim.high - _slack(claim, claim.high, claim.unit)
