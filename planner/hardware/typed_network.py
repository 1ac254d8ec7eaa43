"""Networks between servers as people type them: `400Gb/s`, `8x400GbE`, `NDR`, `EFA 3.2Tb/s per node`."""

from __future__ import annotations

import re

from planner.errors import UsageError
from planner.hardware.network import BITS_PER_BYTE, FABRICS, NETWORKS, Network, describe_network, fabric_of
from planner.units import GIGA, TERA

_PART = re.compile(
    r"(?:(?P<ports>\d+)\s*x(?=\s*\w)"
    r"|(?P<figure>\d+(?:\.\d+)?)\s*(?P<prefix>(?-i:[GT])|[gt](?=bps|be|ige))(?P<unit>(?-i:B)|be|b(?:it)?|ige)?(?:/s|ps)?(?!\w)"
    r"|(?P<of>per\s+|/\s*)(?P<whom>node|server|gpu)\b"
    r"|(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*))[\s,]*",
    re.IGNORECASE,
)
_PREFIX = {"G": GIGA, "T": TERA}
_GENERATION = re.compile(r"(?P<word>[ehnx]dr)(?P<gbit_per_s>\d*)")
"""`ndr`, and `hdr100` for half a port."""
_NO_KIND = "ethernet"
"""Says neither a kind nor a rate: what runs over it may be RoCE or TCP."""
FASTEST_BYTES_PER_S = 200e9
"""Per GPU and direction: twice an adapter of 800 Gb/s, which no server sold exceeds. Beyond it, it is a node's rate."""


def read_typed_network(text: str, gpus_per_node: int) -> Network | None:
    """Network of a text of which every part is understood, in any order; None for any other text.

    Args:
        text: a rate per GPU, or of a node where it says so or gives a number of ports (`8x400Gb/s`), with or without
            the kind or the generation of the network; either of these alone does, too.
        gpus_per_node: share what a node has.
    """
    parts = _parts(text.strip())
    if parts is None:
        return None
    ports, rate, of_node, names = 1, None, False, []
    for part in parts:
        if part["ports"]:
            ports, of_node = int(part["ports"]), True
        elif part["figure"] and rate is None:
            rate = (
                float(part["figure"]) * _PREFIX[part["prefix"].upper()] / (1 if part["unit"] == "B" else BITS_PER_BYTE)
            )
        elif part["whom"]:
            of_node = of_node or part["whom"].lower() != "gpu"
        elif part["name"]:
            names.append(part["name"].lower())
        else:
            return None  # a second rate
    if not all(fabric_of(name) or name == _NO_KIND for name in names):
        return None
    if rate is None:
        rate = next(filter(None, map(_rate_of, names)), None)
    fabric = next(filter(None, map(fabric_of, names)), "")
    if rate is None and (not fabric or of_node):
        return None
    return Network(
        bytes_per_s=None if rate is None else rate * ports / (gpus_per_node if of_node else 1), fabric=fabric
    )


def _parts(text: str) -> list[re.Match[str]] | None:
    """The parts of a text; None where something lies between them."""
    parts, at = [], 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        parts.append(part)
        at = part.end()
    return parts or None


def _rate_of(name: str) -> float | None:
    """Bytes per second of one port of a named network; None of a kind whose rate is open."""
    generation = _GENERATION.fullmatch(name)
    if generation and generation["gbit_per_s"]:
        return float(generation["gbit_per_s"]) * GIGA / BITS_PER_BYTE
    for row in NETWORKS:
        if name in (row.name, row.word):
            return row.gbit_per_s * GIGA / BITS_PER_BYTE
    return None


def network_of_words(words: str, gpus_per_node: int) -> Network:
    """Network of a run's row: as one types it, else what a description of a cluster says of it."""
    return read_typed_network(words, gpus_per_node) or describe_network(words, gpus_per_node)


def is_of_a_server(text: str) -> bool:
    """Whether a text gives the network of a whole server, which its GPUs share."""
    return read_typed_network(text, 1) != read_typed_network(text, 2)


def parse_network(text: str, what: str, gpus_per_node: int) -> Network:
    """Network of a flag's text, of which every part must be understood; arguments as `read_typed_network` has them.

    Raises:
        UsageError: not such a text, a rate of 0, or one that no GPU has.
    """
    network = read_typed_network(text, gpus_per_node)
    if network is None or network.bytes_per_s == 0:
        raise UsageError(
            f"{what}: `{text}` is not a network",
            hint="write its rate like `400Gb/s` (per GPU), `8x400Gb/s` (per node) or `50GB/s`, with its kind where "
            f"you know it ({', '.join(FABRICS)}), or one of " + ", ".join(row.name for row in NETWORKS),
        )
    if network.bytes_per_s is not None and network.bytes_per_s > FASTEST_BYTES_PER_S:
        of_gpu = network.bytes_per_s * BITS_PER_BYTE / GIGA
        raise UsageError(
            f"{what}: `{text}` is {of_gpu:,.0f} Gb/s for each GPU, more than any server has",
            hint=f"a rate without `per node` is that of one GPU: for a whole server, write `{text} per node`",
        )
    return network
