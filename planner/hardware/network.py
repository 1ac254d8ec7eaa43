"""Rates of the network between servers, read from a flag or from the words of a published run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.errors import UsageError
from planner.units import GIGA

BITS_PER_BYTE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGeneration:
    """A network that people name instead of giving its rate."""

    name: str
    """What one types, for example `ib-ndr`."""
    word: str
    """What a description of a cluster calls it, lower case."""
    gbit_per_s: float
    """Of one port, per direction; one port per GPU is taken."""
    source: str


_IBTA = "InfiniBand Trade Association, InfiniBand roadmap: 4x port"
NETWORKS = (
    NetworkGeneration(name="ib-xdr", word="xdr", gbit_per_s=800.0, source=_IBTA),
    NetworkGeneration(name="ib-ndr", word="ndr", gbit_per_s=400.0, source=_IBTA),
    NetworkGeneration(name="ib-hdr", word="hdr", gbit_per_s=200.0, source=_IBTA),
    NetworkGeneration(name="ib-edr", word="edr", gbit_per_s=100.0, source=_IBTA),
    NetworkGeneration(
        name="slingshot", word="slingshot", gbit_per_s=200.0, source="De Sensi et al. 2020, arXiv 2008.08886"
    ),
    NetworkGeneration(
        name="omni-path", word="omni-path", gbit_per_s=100.0, source="Birrittella et al. 2015, Hot Interconnects 23"
    ),
    NetworkGeneration(name="roce-400", word="roce-400", gbit_per_s=400.0, source="IEEE 802.3bs, 400GBASE"),
    NetworkGeneration(name="roce-100", word="roce-100", gbit_per_s=100.0, source="IEEE 802.3ba, 100GBASE"),
)

_PER_NODE = r"(?:/\s*node|per\s+(?:node|server))"
_RATE = re.compile(
    r"(?:(?P<links>\d+)\s*x\s*)?(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>Gbit|Gbps|Gb|GB)(?:/s|ps|\b)"
    rf"(?:\s*{_PER_NODE})?"
)


def network_bytes_per_s(words: str, gpus_per_node: int) -> float | None:
    """Rate per GPU and direction in a description such as `4x100Gb Omni-Path per node`; None where it gives none.

    `NxRATE` and `per node` are totals of a node and are divided by its GPUs; a generation without a rate counts as one
    port per GPU.
    """
    rate = _RATE.search(words)
    if rate is None:
        gbit_per_s = next((row.gbit_per_s for row in NETWORKS if row.word in words.lower()), None)
        return None if gbit_per_s is None else gbit_per_s * GIGA / BITS_PER_BYTE
    of_node = rate["links"] or (re.search(_PER_NODE, words) and "per gpu" not in words.lower())
    unit_bytes_per_s = GIGA if rate["unit"] == "GB" else GIGA / BITS_PER_BYTE
    return float(rate["rate"]) * unit_bytes_per_s * int(rate["links"] or 1) / (gpus_per_node if of_node else 1)


def parse_network_bytes_per_s(text: str, what: str, gpus_per_node: int) -> float:
    """Rate per GPU and direction from `400Gb/s`, `50GB/s`, `8x400Gb/s`, `3200Gb/s per node` or `ib-ndr`, and no more.

    Args:
        text: as typed; every part of it must be understood.
        what: what the text is, for the error: a flag.
        gpus_per_node: divides `NxRATE` and `per node`, which are totals of a node.

    Raises:
        UsageError: not such a text, or a rate of 0.
    """
    whole = _RATE.fullmatch(text) is not None or text.lower() in (row.name for row in NETWORKS)
    rate = network_bytes_per_s(text, gpus_per_node) if whole else None
    if not rate:
        raise UsageError(
            f"{what}: `{text}` is not a network rate",
            hint="write it like `400Gb/s` (per GPU), `8x400Gb/s` (per node), `50GB/s`, or one of "
            + ", ".join(row.name for row in NETWORKS),
        )
    return rate
