"""Networks between servers as people type them: `400Gb/s`, `8x400GbE`, `NDR`, `EFA 3.2Tb/s per node`."""

from __future__ import annotations

import re

from planner.errors import UsageError
from planner.hardware.network import BITS_PER_BYTE, FABRICS, NETWORKS, Network, describe_network, fabric_of
from planner.units import GIGA, TERA

_PART = (
    r"(?i)(?:(?P<ports>\d{1,4})\s*x(?=\s*\w)"
    r"|(?P<figure>\d{1,9}(?:\.\d+)?)\s*(?P<prefix>(?-i:[GT])|[gt](?=bps|be|ige))"
    r"(?P<unit>(?-i:B)|be|b(?:its?)?|ige)?(?:/s|ps)?(?!\w)"
    r"|(?P<of>per\s+|/\s*)(?P<whom>node|server|gpu)\b"
    r"|(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*))[\s,]*"
)
"""A part of a typed network; compiled when somebody types one."""
_PREFIX = {"G": GIGA, "T": TERA}
_GENERATION = r"(?:ib-)?[ehnx]dr(?P<gbit_per_s>\d{2,4})"
"""Generation with a rate, such as `hdr100` (half a port)."""
_KIND = "|".join(FABRICS.values())
_OPEN = r"ib|rocev?2?|" + "|".join(FABRICS)
"""Kinds that may be given without a rate; the rate is then the usual one of the GPU's servers."""
_OTHER_NAMES = {"slingshot-11": "slingshot"}
_NO_KIND = "ethernet"
"""A word that gives neither a kind nor a rate, since RoCE or TCP may run over Ethernet."""
FASTEST_BYTES_PER_S = 200e9
"""Highest rate per GPU and direction: two adapters of 800 Gb/s, which no server exceeds. A higher one is a node's."""


def read_typed_network(text: str, gpus_per_node: int) -> Network | None:
    """Parse a text of which every part is understood, in any order; return None for any other text.

    Args:
        text: a rate per GPU, or of a node if it says so or gives a number of ports (`8x400Gb/s`), with or without the
            kind or the generation of the network. The kind or the generation alone is enough, unless the rate of that
            generation is unknown.
        gpus_per_node: number of GPUs that share the rate of a node.
    """
    parts = _parts(text.strip())
    if parts is None:
        return None
    ports = [int(part["ports"]) for part in parts if part["ports"]]
    rates = [_bytes_per_s(part) for part in parts if part["figure"]]
    names = [part["name"].lower() for part in parts if part["name"]]
    fabrics, usual = set(map(fabric_of, names)) - {""}, set(map(_rate_of, names)) - {None}
    of = {"gpu" if part["whom"].lower() == "gpu" else "node" for part in parts if part["whom"]}
    of |= {"node"} if ports else set()
    if max(len(ports), len(rates), len(of), len(fabrics), len(usual)) > 1 or not all(map(_is_known, names)):
        return None
    rate = next(iter([*rates, *usual]), None)
    if rate is None and (of or not names or not all(re.fullmatch(_OPEN, name) for name in names)):
        return None
    share = gpus_per_node if of == {"node"} else 1
    return Network(
        bytes_per_s=None if rate is None else rate * next(iter(ports), 1) / share, fabric=next(iter(fabrics), "")
    )


def _bytes_per_s(part: re.Match[str]) -> float:
    """Rate of a part in bytes per second; `B` means bytes, any other unit bits."""
    return float(part["figure"]) * _PREFIX[part["prefix"].upper()] / (1 if part["unit"] == "B" else BITS_PER_BYTE)


def _is_known(name: str) -> bool:
    return name == _NO_KIND or _rate_of(name) is not None or re.fullmatch(_KIND, name) is not None


def _parts(text: str) -> list[re.Match[str]] | None:
    """The parts of a text; None if anything in it is not a part."""
    parts, at, pattern = [], 0, re.compile(_PART)
    while at < len(text):
        part = pattern.match(text, at)
        if part is None:
            return None
        parts.append(part)
        at = part.end()
    return parts or None


def _rate_of(name: str) -> float | None:
    """Bytes per second of one port of a named network; None if the name does not determine a rate."""
    if generation := re.fullmatch(_GENERATION, name):
        return float(generation["gbit_per_s"]) * GIGA / BITS_PER_BYTE
    for row in NETWORKS:
        if _OTHER_NAMES.get(name, name) in (row.name, row.word):
            return row.gbit_per_s * GIGA / BITS_PER_BYTE
    return None


def network_of_words(words: str, gpus_per_node: int) -> Network:
    """Network of a run's row, read as typed input if possible, else as a description of a cluster."""
    return read_typed_network(words, gpus_per_node) or describe_network(words, gpus_per_node)


def is_of_a_server(text: str) -> bool:
    """Whether a text gives the rate of a whole server, which its GPUs share."""
    return read_typed_network(text, 1) != read_typed_network(text, 2)


def parse_network(text: str, what: str, gpus_per_node: int) -> Network:
    """Network of a flag's text, of which every part must be understood; for the arguments see `read_typed_network`.

    Raises:
        UsageError: the text is not understood, or the rate is 0 or higher than any GPU has.
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
            f"{what}: `{text}` is {of_gpu:,.0f} Gb/s per GPU, more than any server has",
            hint=_what_is_meant(text, gpus_per_node),
        )
    return network


def _what_is_meant(text: str, gpus_per_node: int) -> str:
    """Hint at the probable mistake behind a rate that is too high for a GPU."""
    if read_typed_network(whole := f"{text} per node", 1) is None:  # the text already says `per GPU`
        return "give the rate of one GPU, or that of a whole server with `per node`"
    if is_of_a_server(text):
        shared = "one GPU has all of it" if gpus_per_node == 1 else f"{gpus_per_node} GPUs share it"
        return f"it is that of a whole server, in which {shared}: see `--gpus-per-node`"
    return f"a rate without `per node` is that of one GPU: for a whole server, write `{whole}`"
