"""Networks between servers: kinds, generations, and parsing of the descriptions in published runs."""

from __future__ import annotations

import re

from planner.lazy import dataclass
from planner.units import GIGA

BITS_PER_BYTE = 8

FABRICS = {
    "efa": r"efa",
    "infiniband": r"infiniband|ib|[fehnx]dr\d*|quantum(?:-\d)?",
    "slingshot": r"slingshot(?:-\d+)?",
    "omni-path": r"omni-path",
    "roce": r"roce(?:v?2)?",
}
"""Regular expressions of the words that identify a kind of network, by its name. The first kind found in a description
is taken as the one used for training, since servers also have Ethernet for management."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Rate and kind of the network between servers, as far as known."""

    bytes_per_s: float | None
    """Rate per GPU and direction; None if the text gives no rate."""
    fabric: str
    """One of `FABRICS`; empty if the text names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGeneration:
    """A network that people refer to by name instead of by its rate."""

    name: str
    """Name as a user types it, for example `ib-ndr`."""
    word: str
    """Lower-case word used for it in descriptions of clusters."""
    gbit_per_s: float
    """Rate of one port, per direction; one port per GPU is assumed."""
    source: str


_IBTA = "InfiniBand Trade Association, InfiniBand roadmap: 4x port"
NETWORKS = (
    NetworkGeneration(name="ib-xdr", word="xdr", gbit_per_s=800.0, source=_IBTA),
    NetworkGeneration(name="ib-ndr", word="ndr", gbit_per_s=400.0, source=_IBTA),
    NetworkGeneration(name="ib-hdr", word="hdr", gbit_per_s=200.0, source=_IBTA),
    NetworkGeneration(name="ib-edr", word="edr", gbit_per_s=100.0, source=_IBTA),
    NetworkGeneration(
        name="efa-400", word="efa-400", gbit_per_s=400.0, source="AWS, Amazon EC2 P5 instances: 3200 Gb/s for 8 GPUs"
    ),
    NetworkGeneration(
        name="efa-50", word="efa-50", gbit_per_s=50.0, source="AWS, Amazon EC2 P4 instances: 400 Gb/s for 8 GPUs"
    ),
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
_PER_GPU = re.compile(r"(?:/\s*|per\s+)gpu\b", re.IGNORECASE)
_RATE = re.compile(
    r"(?:\d+\s*x\s*)?(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>Gbit|Gbps|Gb|GB)(?:/s|ps|\b)"
    rf"(?:\s*{_PER_NODE})?"
)
_PORTS = re.compile(r"(?<![\w.-])(?P<links>\d+)\s*x(?=\s*\S)")
"""Number of ports of a node, as in `8x400Gb/s` or `8x ConnectX-7 IB NDR 400Gb/s`."""


def fabric_of(words: str) -> str:
    """Kind of network that a description names, one of `FABRICS`; empty if it names none."""
    text = words.lower()
    return next((name for name, pattern in FABRICS.items() if re.search(rf"\b(?:{pattern})\b", text)), "")


def describe_network(words: str, gpus_per_node: int) -> Network:
    """Rate and fabric in a description such as `4x100Gb Omni-Path per node`, as far as it gives them.

    `NxRATE`, `N x adapter RATE` and `per node` are totals of a node and are divided by its GPUs, unless the text says
    `per GPU`. A generation without a rate counts as one port per GPU. From a server's parts list (`accelerator: …;
    host: Storage: …, Compute: …`), only the network used for training is read, not the links inside the server, nor
    those for storage or management.
    """
    parts = _outside_servers(words)
    part = min((part for part in parts if not _OTHER_USE.search(part)), key=_rank, default="")
    elsewhere = "; ".join(parts)
    rate = _bytes_per_s(part, elsewhere, gpus_per_node)
    return Network(bytes_per_s=rate, fabric=fabric_of(part) or fabric_of(elsewhere))


def says_nothing(words: str) -> bool:
    """Whether a description mentions a network between servers but gives neither its rate nor its kind."""
    network = describe_network(words, 1)
    return network.bytes_per_s is None and not network.fabric and any(part.strip() for part in _outside_servers(words))


_INSIDE = re.compile(r"nv\s?link|nv\s?switch|nvl\d+|xgmi|pci-?e", re.IGNORECASE)
"""Names of links inside a server."""
_ACCELERATOR = re.compile(r"^\s*accelerator\s*:(?P<inside>.*?)(?:;\s*host\s*:|$)", re.IGNORECASE | re.DOTALL)
"""Beginning of MLPerf's system descriptions: the links between the GPUs, followed by the host's adapters."""
_SEPARATOR = re.compile(r"[;,]|\s\+\s|\sand\s")
_TRAINING = re.compile(r"\bcompute\s*:|\bfor EW\b|east-west", re.IGNORECASE)
_OTHER_USE = re.compile(r"\b(?:storage|management)\b|\bfor NS\b|north-south", re.IGNORECASE)


def _outside_servers(words: str) -> list[str]:
    """Parts of a description that are not about links inside a server."""
    listed = _ACCELERATOR.match(words)
    parts = _SEPARATOR.split(words[listed.end() :] if listed else words)
    if listed:  # an accelerator with built-in ports names the network to which they belong
        parts += [part for part in _SEPARATOR.split(listed["inside"]) if fabric_of(part)]
    return [part for part in parts if not _INSIDE.search(part)]


def _rank(part: str) -> int:
    """Rank of a part by how likely it describes the network used for training; 0 is the most likely."""
    rate, fabric = _RATE.search(part), fabric_of(part)
    signs = (_TRAINING.search(part), rate and fabric, rate, fabric, True)
    return next(number for number, holds in enumerate(signs) if holds)


def _bytes_per_s(part: str, elsewhere: str, gpus_per_node: int) -> float | None:
    """Rate per GPU given by a part of a description; a port without a rate has that of a generation named elsewhere."""
    rate, ports = _RATE.search(part), _PORTS.search(part)
    links = int(ports["links"]) if ports else 1
    of_node = (ports or re.search(_PER_NODE, part)) and not _PER_GPU.search(part)
    shared_by = gpus_per_node if of_node else 1
    if rate is None:
        words = part if any(row.word in part.lower() for row in NETWORKS) else elsewhere
        gbit_per_s = next((row.gbit_per_s for row in NETWORKS if row.word in words.lower()), None)
        if gbit_per_s is None:
            return None
        return gbit_per_s * GIGA / BITS_PER_BYTE * (links / shared_by if ports else 1.0)
    unit_bytes_per_s = GIGA if rate["unit"] == "GB" else GIGA / BITS_PER_BYTE
    return float(rate["rate"]) * unit_bytes_per_s * links / shared_by
