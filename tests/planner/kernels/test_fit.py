from __future__ import annotations

import numpy as np
import pytest

from planner.kernels.fit import fit_surface
from planner.kernels.surface import Axis, Surface
from tests.planner.build import SAID

AXES = (Axis(name="a", first=4, count=5), Axis(name="b", first=2, count=4))


def fitted(sizes: np.ndarray, seconds: np.ndarray) -> Surface:
    work = sizes[:, 0] * sizes[:, 1]
    return fit_surface("test", AXES, sizes, work, seconds, floor_s=0, spread=0, stack_spread=0, evidence=SAID)


def points(count: int = 400) -> np.ndarray:
    return np.exp2(np.random.default_rng(0).uniform([4, 2], [8, 5], (count, 2)))


def test_a_power_law_is_met_everywhere():
    sizes = points()
    surface = fitted(sizes, 1e-9 * sizes[:, 0] ** 0.7 * sizes[:, 1] ** 0.9)

    assert surface.seconds(100.0 * 20.0, 100.0, 20.0) == pytest.approx(1e-9 * 100**0.7 * 20**0.9, rel=1e-3)


def test_one_disturbed_point_in_many_hardly_moves_the_surface():
    sizes = points()
    seconds = 1e-9 * sizes[:, 0] * sizes[:, 1]
    seconds[7] *= 30.0

    assert fitted(sizes, seconds).rate(*sizes[7]) == pytest.approx(1e9, rel=0.05)


def test_a_node_that_no_point_touches_lies_on_the_line_of_its_neighbours():
    sizes = points()
    away = sizes[(sizes[:, 0] < 32) | (sizes[:, 0] > 128)]

    assert fitted(away, 1e-9 * away[:, 0] ** 0.5 * away[:, 1]).seconds(64.0 * 8, 64.0, 8.0) == pytest.approx(
        1e-9 * 64**0.5 * 8, rel=1e-2
    )


def test_noise_that_lets_a_larger_shape_be_faster_is_evened_out():
    sizes = np.array([[2.0**a, 2.0**b] for a in range(4, 9) for b in range(2, 6)])
    seconds = np.ones(len(sizes))
    seconds[::2] = 1.5
    surface = fitted(sizes, seconds)
    times = surface.seconds(sizes[:, 0] * sizes[:, 1], *sizes.T).reshape(5, 4)

    assert (np.diff(times, axis=0) > -1e-9).all()
    assert (np.diff(times, axis=1) > -1e-9).all()


def test_no_node_is_faster_than_the_fastest_point():
    sizes = points()
    near = sizes[(sizes[:, 0] < 64) & (sizes[:, 1] < 16)]
    seconds = 1e-9 * np.sqrt(near[:, 0] * near[:, 1])  # the rate rises with the size: its trend beyond has no end

    fastest = (near[:, 0] * near[:, 1] / seconds).max()
    assert fitted(near, seconds).rate(256.0, 32.0) == pytest.approx(fastest)
