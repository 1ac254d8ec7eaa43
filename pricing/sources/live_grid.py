"""Live grid intensity from Electricity Maps, for users with a token; without one the dated rows are used.

The value is for one hour: suitable for choosing when to run, not for an annual report. Tested with a recorded answer
and a local server, not with the live service.
"""

from __future__ import annotations

from urllib.parse import quote

from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.text import shortened
from planner.units import kg_from_g
from pricing.base.fact import Fact
from pricing.sources.web import FetchError, Server

ADDRESS = "https://api.electricitymap.org/v3/carbon-intensity/latest"
TOKEN_VARIABLE = "ELECTRICITYMAPS_TOKEN"
_WITHOUT = "use the dated rows: leave `live:` out, with a country in three letters as in --grid DEU"


def live_intensity(zone: str, token: str, *, address: str = ADDRESS) -> Fact:
    """Return the current intensity of a zone in kg CO₂e per kWh, for `site_facts(live_grid=...)`.

    Args:
        zone: a zone of Electricity Maps, for example `DE` or `US-MIDA-PJM`.
        token: the user's API token.
        address: another server with the same interface.

    Raises:
        UsageError: there is no token, no answer, or an answer that is not as the service documents.
    """
    if not token:
        raise UsageError("live grid intensity needs a token", hint=f"set {TOKEN_VARIABLE}, or {_WITHOUT}")
    try:
        server = Server(address, headers={"auth-token": token})
        answer = server.get_json(f"{server.url}?zone={quote(zone, errors='replace')}")
    except FetchError as error:
        raise UsageError(f"no live grid intensity: {error}", hint=_WITHOUT) from error
    grams = answer.get("carbonIntensity") if isinstance(answer, dict) else None
    if isinstance(grams, bool) or not isinstance(grams, int | float) or not 0 < grams <= 2000:
        raise UsageError(f"no live grid intensity: the answer for `{zone}` is {shortened(repr(grams))}", hint=_WITHOUT)
    at = shortened(str(answer.get("datetime", "")))
    scope = shortened(str(answer.get("emissionFactorType", "unknown scope")))
    guessed = ", estimated by the service" if answer.get("isEstimated") else ""
    return Fact(
        estimate=Estimate.exactly(kg_from_g(float(grams))),
        evidence=Evidence(
            id=f"grid:live:{zone}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{zone} at {at}: {grams:g} g CO₂e per kWh, location-based, {scope}, of one hour{guessed}",
            source="Electricity Maps, carbon-intensity/latest",
            date=at or None,
            used_in=("carbon_tco2e",),
        ),
    )
