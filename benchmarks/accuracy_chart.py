"""Chart of predicted against published speed as SVG: a point per run, a colour per precision, bands of 10 and 30%."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from html import escape

COLOURS = {
    "fp32": "#7a5195", "tf32": "#bc5090", "fp16": "#ef5675", "bf16": "#0072b2", "fp8": "#e69f00", "mxfp8": "#009e73",
    "nvfp4": "#56b4e9",
}  # fmt: skip
"""Colour by precision, chosen to be distinguishable in grey and for colour-blind readers as far as seven can be."""
WIDTH, HEIGHT, LEFT, TOP, SIDE = 720, 700, 80, 40, 600
DECADES = (1, 6)
"""Axes from 10 to a million tokens per second and GPU."""

Point = tuple[str, float, float]
"""Precision, published, predicted."""


def _x(value: float) -> float:
    low, high = DECADES
    return LEFT + SIDE * (math.log10(value) - low) / (high - low)


def _y(value: float) -> float:
    low, high = DECADES
    return TOP + SIDE * (1.0 - (math.log10(value) - low) / (high - low))


def _band(ratio: float, shade: str) -> str:
    low, high = 10.0 ** DECADES[0], 10.0 ** DECADES[1]
    up = [(low, low * ratio), (high / ratio, high), (high, high), (high, high / ratio), (low * ratio, low), (low, low)]
    points = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in up)
    return f'<polygon points="{points}" fill="{shade}"/>'


def _axes() -> list[str]:
    marks = []
    for power in range(DECADES[0], DECADES[1] + 1):
        value, label = 10.0**power, f"{10**power:,}"
        x, y, right, bottom = _x(value), _y(value), LEFT + SIDE, TOP + SIDE
        marks.append(f'<path d="M{x:.0f} {TOP}V{bottom}M{LEFT} {y:.0f}H{right}" stroke="#ddd" fill="none"/>')
        marks.append(f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
        marks.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{label}</text>')
    return marks


def draw(points: Iterable[Point]) -> str:
    """Return the chart of these points; points outside the axes are left out."""
    low, high = 10.0 ** DECADES[0], 10.0 ** DECADES[1]
    groups: dict[str, list[str]] = defaultdict(list)
    for precision, published, predicted in points:
        if low <= published <= high and low <= predicted <= high:
            groups[precision].append(f"M{_x(published):.1f} {_y(predicted):.1f}h0")
    title = "Predicted against published training speed"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _band(1.3, "#eef3f8"),
        _band(1.1, "#d5e3ef"),
        *_axes(),
        f'<path d="M{LEFT} {TOP + SIDE}L{LEFT + SIDE} {TOP}" stroke="#555" fill="none"/>',
    ]
    for number, precision in enumerate(name for name in COLOURS if name in groups):
        colour, x = COLOURS[precision], LEFT + 12 + 87 * number
        path = "".join(groups[precision])
        style = 'stroke-width="4" stroke-linecap="round" stroke-opacity=".55"'
        parts.append(f'<path d="{path}" stroke="{colour}" {style}/>')
        parts.append(f'<circle cx="{x}" cy="24" r="5" fill="{colour}"/><text x="{x + 9}" y="28">{precision} ')
        parts.append(f"{len(groups[precision])}</text>")
    middle = TOP + SIDE / 2
    parts.append(f'<text x="{LEFT + SIDE / 2}" y="{HEIGHT - 18}" text-anchor="middle">published, ')
    parts.append("tokens (samples of an encoder or image) per second and GPU</text>")
    parts.append(f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">predicted</text></svg>')
    return "".join(parts) + "\n"
