"""The kernels of a record as surfaces: at the shapes that were measured they give back what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from planner.evidence import Evidence, EvidenceKind
from planner.measured.kernels import attention_columns, fit_attention, fit_products, product_seconds
from planner.measured.surfaces import MEASURED_ATTENTION_AXES, MEASURED_AXES, measured_attention, measured_surface
from tests.planner.recorded import attention, gemm

RECORD = Evidence(id="record:0", kind=EvidenceKind.MEASURED, what="a GPU", source="mpplan probe", gpu="h200-sxm-141gb")
SQUARES = (1024, 2048, 4096, 8192)


def test_products_take_what_the_fit_says_at_their_shape() -> None:
    fit = fit_products([gemm(n, n, n) for n in SQUARES])["bf16"]
    surface = measured_surface(fit, "bf16", RECORD)

    assert surface.axes == MEASURED_AXES
    for n in SQUARES:
        assert float(surface.seconds(2.0 * n**3, n, n, n)) == pytest.approx(
            product_seconds(fit, "bf16", n, n, n), rel=1e-6
        )


def test_attention_takes_what_the_fit_says_and_no_less_than_a_kernel() -> None:
    fit = fit_attention([attention(length) for length in SQUARES], "forward")["bf16"]
    surface = measured_attention(fit, "bf16", 3e-6, RECORD)
    flop = 2.0 * 128 * 32 * 4096.0**2

    assert surface.axes == MEASURED_ATTENTION_AXES
    assert surface.floor_s == 3e-6
    expected = fit.seconds(attention_columns(flop, 4096.0, 128.0), (4096.0, 128.0))
    assert float(surface.seconds(flop, 128, 32, 4096)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("slowdown", [0.9, 1.25])
def test_what_is_slower_within_layers_is_so_at_every_shape(slowdown: float) -> None:
    products = fit_products([gemm(n, n, n) for n in SQUARES])["bf16"]
    forward = fit_attention([attention(length) for length in SQUARES], "forward")["bf16"]
    pairs = [
        (measured_surface(products, "bf16", RECORD), measured_surface(products, "bf16", RECORD, slowdown)),
        (measured_attention(forward, "bf16", 0.0, RECORD), measured_attention(forward, "bf16", 0.0, RECORD, slowdown)),
    ]

    for burst, within_layers in pairs:
        assert np.exp(burst.log_rate - within_layers.log_rate) == pytest.approx(slowdown)
