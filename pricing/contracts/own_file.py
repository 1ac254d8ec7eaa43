"""own.toml: the user's own machines, with documented defaults, and the price of a GPU-hour that they imply."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from planner.costs.prices import GpuPrice, OwnedPrice, SiteFacts
from planner.costs.quantity import Power
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.rows import Row, keyed, read_rows
from pricing.base.folder import DATA
from pricing.contracts.owned import (
    ITEMS,
    Owned,
    break_even_ratio,
    electricity_usd_per_h,
    items_usd_per_gpu_h,
    usd_per_gpu_h,
)
from pricing.files.toml_file import TomlFile, read_toml
from pricing.place.carbon import LIFE_YEARS

_End = tuple[float, float, float]
"""One end of what an hour depends on: server price, PUE, price of electricity."""
LIFE = "capital.life_years"
EPOCH = "epoch-research/training-cost-trends@263c40a1 cost_analysis_standalone.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """The default of a key of own.toml, with its bounds and its source."""

    key: str
    value: float
    low: float
    high: float
    source: str
    date: str


DEFAULTS = (
    Default(key="capital.network_ratio", value=0.19, low=0, high=0.6, source=EPOCH, date="2024"),
    Default(
        key="capital.storage_ratio",
        value=0.0,
        low=0,
        high=0.3,
        source="assumed: storage is in the staff share",
        date="2026",
    ),
    Default(
        key=LIFE,
        value=LIFE_YEARS,
        low=0.5,
        high=20,
        source=f"{EPOCH}, life from 2023 on",
        date="2024",
    ),
    Default(key="capital.age_years", value=0, low=0, high=20, source="assumed: bought for the run", date="2026"),
    Default(
        key="capital.residual_ratio", value=0, low=0, high=0.9, source="assumed: worth nothing at the end", date="2026"
    ),
    Default(key="capital.financing_ratio", value=0, low=0, high=0.5, source="assumed: paid in cash", date="2026"),
    Default(
        key="use.utilisation_ratio",
        value=0.8,
        low=0.01,
        high=1,
        source="assumed: no published figure; the break-even utilisation says what it takes",
        date="2026",
    ),
    Default(
        key="power.mean_load_ratio",
        value=0.76,
        low=0.05,
        high=1,
        source="arXiv 2506.14551: heavy training draws 76% of a DGX H100's 10.2 kW on average",
        date="2025",
    ),
    Default(
        key="power.idle_load_ratio",
        value=0.15,
        low=0,
        high=1,
        source="NVIDIA DPS registry: 1000 W idle of a 6667 W GB200 tray",
        date="2025",
    ),
    Default(
        key="housing.colocation_usd_per_kw_month",
        value=184.06,
        low=1,
        high=2000,
        source="CBRE: asking price for 250 to 500 kW, US primary markets, without energy",
        date="2024",
    ),
    Default(key="housing.facility_life_years", value=15, low=1, high=50, source="assumed", date="2026"),
    Default(
        key="people.staff_ratio",
        value=0.1,
        low=0,
        high=2,
        source="SemiAnalysis 2026-04-20 (secondary): storage, control plane, support and set-up are 5 to 15% of TCO",
        date="2026",
    ),
)
"""Defaults, shown as evidence in every answer that uses them."""

SERVER_OVER_GPU = 1.64
"""Price of a server over the price of its GPUs, used where only the card's price is known (Epoch AI)."""

NAMEPLATE_OVER_TDP = 1.8
"""Nameplate power of a server over that of its GPUs, used where the catalogue has no host power (Epoch AI)."""

_OTHER_KEYS = (
    "capital.server_usd_per_gpu",
    "capital.depreciation",
    "power.server_kw_per_gpu",
    "housing.kind",
    "housing.facility_usd_per_kw",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """A published price of the servers around one kind of GPU."""

    id: str
    usd_per_gpu: Estimate
    """Price of a server divided by its number of GPUs."""
    server_over_gpu: float
    """Factor included in the price for the server around the card; 1 where the source prices whole servers."""
    dates: str
    """ISO 8601 interval of the price."""
    source: str
    notes: str


@lru_cache(maxsize=1)
def server_rows() -> dict[str, ServerRow]:
    """Return the rows of `servers.csv` by GPU."""
    return keyed(read_rows(DATA / "servers.csv"), _server_row, key="gpu")


def _server_row(row: Row) -> ServerRow:
    over = 1.0 if row.flag("with_server") else SERVER_OVER_GPU
    low, mid, high = (
        row.number(key, low=100, high=1_000_000) for key in ("usd_per_gpu_low", "usd_per_gpu", "usd_per_gpu_high")
    )
    if not low <= mid <= high:
        raise row.fail("usd_per_gpu", f"a price from {low:g} to {high:g}")
    return ServerRow(
        id=row.text("id"),
        usd_per_gpu=Estimate(low=low * over, mid=mid * over, high=high * over),
        server_over_gpu=over,
        dates=f"{row.day('date_earliest')}/{row.day('date_latest')}",
        source=row.text("source"),
        notes=row.text("notes"),
    )


def read_own(path: Path, gpu: Gpu) -> tuple[Owned, Estimate, tuple[Evidence, ...]]:
    """Read own.toml for a GPU: the machines at the mid server price, the range of that price, and the evidence.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML, has an unknown key or a value out of bounds, or lacks a key without a default.
    """
    file = read_toml(path)
    file.only([default.key for default in DEFAULTS] + list(_OTHER_KEYS))
    values = {default.key: file.number(default.key, default.low, default.high, default.value) for default in DEFAULTS}
    server, server_evidence = _server_price(file, gpu)
    kind = file.word("housing.kind", ("colocation", "own"), "colocation")
    facility = file.number("housing.facility_usd_per_kw", 100, 100_000) if kind == "own" else 0.0
    owned = Owned(
        server_usd_per_gpu=server.mid,
        network_ratio=values["capital.network_ratio"],
        storage_ratio=values["capital.storage_ratio"],
        life_years=values[LIFE],
        age_years=values["capital.age_years"],
        depreciation=file.word("capital.depreciation", ("straight-line", "economic"), "straight-line"),
        residual_ratio=values["capital.residual_ratio"],
        financing_ratio=values["capital.financing_ratio"],
        utilisation_ratio=values["use.utilisation_ratio"],
        server_power=_nameplate(file, gpu),
        mean_load_ratio=values["power.mean_load_ratio"],
        idle_load_ratio=values["power.idle_load_ratio"],
        housing=kind,
        colocation_usd_per_kw_month=values["housing.colocation_usd_per_kw_month"],
        facility_usd_per_kw=facility,
        facility_life_years=values["housing.facility_life_years"],
        staff_ratio=values["people.staff_ratio"],
    )
    return owned, server, (server_evidence, *_evidence(file))


SERVER = "capital.server_usd_per_gpu"
"""Key for the price of a server per GPU, which applies to every GPU."""


def states_server_price(path: Path) -> bool:
    """Return whether own.toml states a server price, which then applies to every GPU of the question.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML.
    """
    return read_toml(path).get(SERVER) is not None


def _server_price(file: TomlFile, gpu: Gpu) -> tuple[Estimate, Evidence]:
    row = server_rows().get(gpu.id)
    if file.get(SERVER) is not None:
        usd = file.number(SERVER, 100, 1_000_000)
        what = f"server price {usd:g} USD per GPU"
        given = Evidence(
            id="own:server", kind=EvidenceKind.GIVEN, what=what, source=file.name, gpu=gpu.id, used_in=("cost_usd",)
        )
        return Estimate.exactly(usd), given
    if row is None:
        raise file.fail(
            SERVER, f"no list price is known for a server with the {gpu.id}", "give the price per GPU of yours"
        )
    usd_per_gpu, over = row.usd_per_gpu, row.server_over_gpu
    what = f"server price {usd_per_gpu.mid:g} USD per GPU ({usd_per_gpu.low:g} to {usd_per_gpu.high:g}); {row.notes}"
    evidence = Evidence(
        id=f"own:{row.id}",
        kind=EvidenceKind.PUBLISHED,
        what=what if over == 1.0 else f"{what}; times {over} for the server around it",
        source=row.source,
        date=row.dates,
        gpu=gpu.id,
        used_in=("cost_usd",),
        public=True,
    )
    return usd_per_gpu, evidence


def _nameplate(file: TomlFile, gpu: Gpu) -> Power:
    """Return the file's value, else the GPU's limit and its share of the host's nameplate, else 1.8 times the limit."""
    if file.get("power.server_kw_per_gpu") is not None:
        return Power.from_kw(file.number("power.server_kw_per_gpu", 0.05, 20))
    if gpu.host_power_w is None:
        return Power(w=gpu.tdp_w * NAMEPLATE_OVER_TDP)
    return Power(w=gpu.tdp_w + gpu.host_power_w / gpu.gpus_per_node)


def _evidence(file: TomlFile) -> tuple[Evidence, ...]:
    evidence = []
    for default in DEFAULTS:
        given = file.get(default.key)
        evidence.append(
            Evidence(
                id=f"own:{default.key}",
                kind=EvidenceKind.ASSUMED if given is None else EvidenceKind.GIVEN,
                what=f"{default.key} = {default.value if given is None else given}",
                source=default.source if given is None else file.name,
                date=default.date if given is None else None,
                used_in=("cost_usd", "embodied_tco2e", "sci_kg_per_run") if default.key == LIFE else ("cost_usd",),
                public=given is None,
            )
        )
    return tuple(evidence)


def owned_price(path: Path, gpu: Gpu, site: SiteFacts, rental: GpuPrice | None = None) -> OwnedPrice:
    """Return the cost of a GPU-hour that own.toml implies.

    The range takes server price, PUE and electricity price all at their low, mid or high. That is wider than a range
    from independent draws, since they are rarely all high at once.

    Args:
        path: own.toml; every key has a default, except the server price of GPUs that `servers.csv` lacks.
        gpu: the GPU of the machines.
        site: PUE and electricity price; without a price the cost is a lower bound.
        rental: the price of renting, for the break-even utilisation.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: see `read_own`.
    """
    owned, server, evidence = read_own(path, gpu)
    power = site.electricity_usd_per_kwh
    gap = None if power is not None else site.electricity_gap or _NO_POWER
    ends = (
        (server.low, site.pue.low, power.low if power else 0.0),
        (server.mid, site.pue.mid, power.mid if power else 0.0),
        (server.high, site.pue.high, power.high if power else 0.0),
    )
    low, mid, high = (
        usd_per_gpu_h(replace(owned, server_usd_per_gpu=price), pue, usd_per_kwh) for price, pue, usd_per_kwh in ends
    )
    items = items_usd_per_gpu_h(owned, site.pue.mid, ends[1][2])
    busy = [electricity_usd_per_h(owned, owned.mean_load_ratio, pue, usd_per_kwh) for _, pue, usd_per_kwh in ends]
    rented = rental.usd_per_gpu_h if rental else None
    low_ratio, mid_ratio, high_ratio = _break_even(owned, ends, rented)
    return OwnedPrice(
        price=GpuPrice(
            gpu=gpu.id,
            usd_per_gpu_h=Estimate(low=low, mid=mid, high=high, at_least=power is None),
            basis=Message.of(
                "price.basis.owned",
                depreciation=owned.depreciation,
                utilisation_ratio=owned.utilisation_ratio,
                housing=owned.housing,
            ),
            evidence=evidence,
            gap=gap,
            commitment="owned",
            warnings=_warnings(path, owned, rental),
        ),
        items_usd_per_gpu_h={name: items[name] for name in ITEMS},
        break_even_utilisation_ratio=mid_ratio,
        break_even_low_ratio=low_ratio,
        break_even_high_ratio=high_ratio,
        rental_usd_per_gpu_h=rented.mid if rented else None,
        rental_low_usd_per_gpu_h=rented.low if rented else None,
        rental_high_usd_per_gpu_h=rented.high if rented else None,
        rental_basis=rental.basis if rental and rented else None,
        rental_evidence=rental.evidence if rental and rented else (),
        utilisation_ratio=owned.utilisation_ratio,
        life_years=owned.life_years,
        busy_usd_per_gpu_h=Estimate(low=busy[0], mid=busy[1], high=busy[2]),
    )


def _break_even(owned: Owned, ends: tuple[_End, ...], rented: Estimate | None) -> tuple[float | None, ...]:
    """Return the utilisation from which owning costs less, with its low, mid and high.

    At its low, owning costs its low and renting its high; at its high, the opposite. None: owning costs more there at
    any utilisation, or no rental price is known.
    """
    if rented is None:
        return None, None, None
    return tuple(
        break_even_ratio(replace(owned, server_usd_per_gpu=server), pue, usd_per_kwh, rent)
        for (server, pue, usd_per_kwh), rent in zip(ends, (rented.high, rented.mid, rented.low), strict=True)
    )


_ONLY_WITH = {
    "housing.facility_usd_per_kw": ("housing.kind", "own"),
    "housing.facility_life_years": ("housing.kind", "own"),
    "housing.colocation_usd_per_kw_month": ("housing.kind", "colocation"),
    "capital.residual_ratio": ("capital.depreciation", "straight-line"),
}
"""Keys that count only with one word of another key."""


def _unused_keys(path: Path, owned: Owned) -> tuple[Message, ...]:
    """Warn of keys that the file states but that its kind of housing or depreciation does not use."""
    file, chosen = read_toml(path), {"housing.kind": owned.housing, "capital.depreciation": owned.depreciation}
    return tuple(
        Message.of("price.warning.own_unused", key=key, other=other, word=word)
        for key, (other, word) in _ONLY_WITH.items()
        if file.get(key) is not None and chosen[other] != word
    )


def _warnings(path: Path, owned: Owned, rental: GpuPrice | None) -> tuple[Message, ...]:
    rented = () if rental is None else _rental_warnings(rental)
    return (*_unused_keys(path, owned), *_age_warnings(owned), *rented)


def _age_warnings(owned: Owned) -> tuple[Message, ...]:
    """Warn that an age was given, which straight-line depreciation ignores."""
    if owned.age_years <= 0 or owned.depreciation == "economic":
        return ()
    values = {"age": owned.age_years, "life": owned.life_years}
    if owned.age_years < owned.life_years:
        return (Message.of("price.warning.age_unused", **values),)
    return (Message.of("price.warning.written_off", **values),)


def _rental_warnings(rental: GpuPrice) -> tuple[Message, ...]:
    """Return warnings about the rental price for comparison; it is in no total, so what it lacks is not a gap."""
    if rental.gap is None:
        return rental.warnings
    return (*rental.warnings, Message.of("price.warning.rental", what=rental.gap.what, why=rental.gap.why))


_NO_POWER = Gap.of("price.no_electricity")
