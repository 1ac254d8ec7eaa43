"""How many products and collectives run beside each other."""

from __future__ import annotations

from probes.workloads.distributed.overlap import MOST_CALLS, numbers_of


def test_collectives_outlast_the_products_by_half() -> None:
    products, collectives = numbers_of(0.02, 0.25e-3, 1e-3)

    assert (products, collectives) == (64, 24)  # 16 ms and 24 ms


def test_collectives_that_are_too_short_for_their_number_leave_fewer_products() -> None:
    """32 MiB over NVLink take less than a product of 4096: 64 of them would end before 64 products do."""
    products, collectives = numbers_of(0.02, 0.25e-3, 0.15e-3)

    assert (products, collectives) == (25, 63)
    assert collectives * 0.15e-3 >= 1.5 * products * 0.25e-3
    assert collectives <= MOST_CALLS


def test_a_product_longer_than_the_part_runs_once() -> None:
    assert numbers_of(0.02, 0.125, 0.03125) == (1, 6)
