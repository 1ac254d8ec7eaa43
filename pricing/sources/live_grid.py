"""Live grid intensity from Electricity Maps, for users with a token; otherwise the dated rows are used.

The value is of one hour and one zone: right for when to run, not for a year's report. Not verified live: tested on a
recorded answer and a local server.
"""

from __future__ import annotations

from urllib.parse import quote

from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.units import kg_from_g
from pricing.base.fact import Fact
from pricing.sources.base import FetchError, get_json

ADDRESS = "https://api.electricitymap.org/v3/carbon-intensity/latest"
TOKEN_VARIABLE = "ELECTRICITYMAPS_TOKEN"


def live_intensity(zone: str, token: str, *, address: str = ADDRESS) -> Fact:
    """The intensity of a zone now, in kg CO2e per kWh, for `site_facts(live_grid=...)`.

    Args:
        zone: a zone of Electricity Maps, for example `DE` or `US-MIDA-PJM`.
        token: the user's.
        address: another server that answers alike.

    Raises:
        UsageError: no token, no answer, or one that is not what the service documents.
    """
    if not token:
        raise UsageError(
            "live grid intensity needs a token", hint=f"set {TOKEN_VARIABLE}, or leave it out: rows are used"
        )
    try:
        answer = get_json(f"{address}?zone={quote(zone)}", headers={"auth-token": token})
    except FetchError as error:
        raise UsageError(f"no live grid intensity: {error}", hint="leave it out: the dated rows are used") from error
    grams = answer.get("carbonIntensity") if isinstance(answer, dict) else None
    if isinstance(grams, bool) or not isinstance(grams, int | float) or not 0 < grams <= 2000:
        raise UsageError(f"no live grid intensity: `{zone}` was answered with {grams!r}", hint="leave it out")
    at = str(answer.get("datetime", ""))
    how = answer.get("emissionFactorType", "unknown scope")
    guessed = ", estimated by the service" if answer.get("isEstimated") else ""
    return Fact(
        estimate=Estimate.exactly(kg_from_g(float(grams))),
        evidence=Evidence(
            id=f"grid:live:{zone}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{zone} at {at}: {grams:g} g CO2e per kWh, location-based, {how}, of one hour{guessed}",
            source="Electricity Maps, carbon-intensity/latest",
            date=at or None,
            used_in=("carbon_tco2e",),
        ),
    )
